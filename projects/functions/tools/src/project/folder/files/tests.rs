use tempfile::TempDir;

use super::super::lines::End;
use super::*;

fn shop(root: &TempDir) -> Folder {
    Folder::at(root.path(), &"shop".parse().unwrap())
}

#[test]
fn many_read_or_one_writes() {
    let root = tempfile::tempdir().unwrap();
    let folder = shop(&root);
    let readers = [folder.read().unwrap(), folder.read().unwrap()];
    let error = folder.lock(LOCK, File::try_lock, 2).unwrap_err().to_string();
    assert!(
        error.contains("another program holds") && error.ends_with("try again when it is done")
    );
    drop(readers);
    std::thread::scope(|scope| {
        let writing = folder.write().unwrap();
        let waiting = scope.spawn(|| folder.read().is_ok());
        drop(writing);
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn only_a_folder_that_does_not_exist_has_no_names() {
    let root = tempfile::tempdir().unwrap();
    let folder = shop(&root);
    let writing = folder.write().unwrap();
    assert_eq!(writing.names("conflicts").unwrap(), [""; 0]);
    writing.replace("conflicts/one", "").unwrap();
    assert_eq!(writing.names("conflicts").unwrap(), ["one"]);
    // Any other failure is an error.
    let no_folder = names_in(&writing.path("conflicts/one")).unwrap_err();
    assert_eq!(no_folder.kind(), ErrorKind::NotADirectory);
}

#[cfg(unix)]
#[test]
fn no_link_leads_out_of_the_folder() {
    use std::os::unix::fs::symlink;

    let (root, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let theirs = others.path().join("theirs");
    fs::write(&theirs, "theirs").unwrap();
    let is_link =
        |error: anyhow::Error| assert!(format!("{error:#}").contains("is a link"), "{error:#}");
    let folder = Folder::at(&root.path().join(ROOT), &"shop".parse().unwrap());
    let above = folder.path.parent().unwrap();
    symlink(others.path(), above).unwrap();
    is_link(folder.write().err().unwrap());
    fs::remove_file(above).unwrap();
    fs::create_dir(above).unwrap();
    symlink(others.path(), &folder.path).unwrap();
    is_link(folder.read().err().unwrap());
    fs::remove_file(&folder.path).unwrap();
    fs::create_dir(&folder.path).unwrap();
    for to in [&theirs, &others.path().join("new")] {
        symlink(to, folder.path.join("lock")).unwrap();
        is_link(folder.write().err().unwrap());
        fs::remove_file(folder.path.join("lock")).unwrap();
    }
    let writing = folder.write().unwrap();
    for (name, new) in [(EVENTS, "events.jsonl.new"), (OUTBOX, "outbox.jsonl.new")] {
        for name in [name, new] {
            symlink(&theirs, writing.path(name)).unwrap();
        }
        is_link(writing.text(name).unwrap_err());
        if name == EVENTS {
            is_link(writing.lines(|_| Ok(())).unwrap_err());
            is_link(writing.behind(&End::default()).err().unwrap());
        }
        // A file is replaced by a new one, and so is a link.
        writing.replace(name, "ours").unwrap();
        assert_eq!(writing.text(name).unwrap().unwrap(), "ours");
    }
    symlink(others.path(), writing.path("conflicts")).unwrap();
    is_link(writing.names("conflicts").unwrap_err());
    is_link(writing.text("conflicts/theirs").unwrap_err());
    is_link(writing.replace("conflicts/theirs", "ours").unwrap_err());
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    assert_eq!(fs::read_dir(&others).unwrap().count(), 1);
}
