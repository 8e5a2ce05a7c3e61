    #[test]
    fn __event___of_version___from___is_upcast() {
        let old = serde_json::json!(__payload__);
        let newest = serde_json::json!(__payload__);
        assert_eq!(ringfence::kit::upcast::<super::__Event__>(__from__, old), newest);
    }
