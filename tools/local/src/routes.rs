//! Finds the route of a request by the rules of API Gateway.
//!
//! A route is possible if it takes the request's method, by its name or as `ANY`, and its path. Of the possible routes,
//! API Gateway prefers one whose path is as long as the request's, then one that ends in a greedy variable, then
//! `$default`. Within one kind AWS takes "the most specific" and does not say more. Here it is the route that has text
//! where the other one has a variable, compared from the left, and after that the one that names the method.

use crate::template::{ANY, DEFAULT, Route};

/// The variables of a path, each with the part of the request in its place, as it was sent.
pub(crate) type Variables<'r, 'p> = Vec<(&'r str, &'p str)>;

/// The route that takes a request, and its variables. `None` if none does.
pub(crate) fn route_of<'r, 'p>(
    routes: &'r [Route],
    method: &str,
    path: &'p str,
) -> Option<(&'r Route, Variables<'r, 'p>)> {
    let of_method = routes.iter().filter(|route| [ANY, method].contains(&&*route.method));
    let possible = of_method.filter_map(|route| {
        let (fit, variables) = fit(&route.path, path)?;
        Some(((fit, route.method == ANY), (route, variables)))
    });
    possible.min_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, found)| found)
}

/// Whether a route takes requests of this path, by any method.
pub(crate) fn takes_path(routes: &[Route], path: &str) -> bool {
    routes.iter().any(|route| fit(&route.path, path).is_some())
}

/// How well a route's path fits a request's. The best comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Full(Vec<Part>),
    Greedy(Vec<Part>),
    Default,
}

/// A part of a route's path, between slashes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Text,
    Variable,
    Greedy,
}

/// How well they fit, and the variables. `None` if they don't fit.
fn fit<'r, 'p>(route: &'r str, path: &'p str) -> Option<(Fit, Variables<'r, 'p>)> {
    if route == DEFAULT {
        return Some((Fit::Default, Vec::new()));
    }
    let (mut parts, mut variables) = (Vec::new(), Vec::new());
    let mut rest = Some(path.strip_prefix('/')?);
    for part in route.strip_prefix('/')?.split('/') {
        let left = rest?;
        let (here, after) = left.split_once('/').map_or((left, None), |(a, b)| (a, Some(b)));
        let variable = part.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
        match variable.map(|name| (name, name.strip_suffix('+'))) {
            None if part == here => parts.push(Part::Text),
            Some((_, Some(name))) if !left.is_empty() => {
                variables.push((name, left));
                parts.push(Part::Greedy);
                return Some((Fit::Greedy(parts), variables));
            }
            Some((name, None)) if !here.is_empty() => {
                variables.push((name, here));
                parts.push(Part::Variable);
            }
            _ => return None,
        }
        rest = after;
    }
    rest.is_none().then_some((Fit::Full(parts), variables))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which of these routes takes each request. `None` stands for a request that no route takes.
    #[track_caller]
    fn check(routes: &[&str], taken: &[(&str, Option<&str>)]) {
        let route = |key: &&str| {
            let (method, path) = key.split_once(' ').unwrap_or((ANY, key));
            let (method, path) = (method.to_owned(), path.to_owned());
            Route { method, path, function: (*key).to_owned(), token_scopes: None }
        };
        // Their order in the template does not matter.
        for routes in [routes.to_vec(), routes.iter().rev().copied().collect()] {
            let routes: Vec<Route> = routes.iter().map(route).collect();
            for (request, expected) in taken {
                let (method, path) = request.split_once(' ').expect("a method and a path");
                let found = route_of(&routes, method, path).map(|(route, _)| &*route.function);
                assert_eq!(found, *expected, "{request}");
            }
        }
    }

    #[test]
    fn a_request_goes_to_the_route_that_api_gateway_would_choose() {
        // The example of AWS, "Create routes for HTTP APIs".
        let pets = [
            "GET /pets/dog/1",
            "GET /pets/dog/{id}",
            "GET /pets/{proxy+}",
            "ANY /{proxy+}",
            DEFAULT,
        ];
        check(
            &pets,
            &[
                ("GET /pets/dog/1", Some("GET /pets/dog/1")),
                ("GET /pets/dog/2", Some("GET /pets/dog/{id}")),
                ("GET /pets/cat/1", Some("GET /pets/{proxy+}")),
                ("POST /test/5", Some("ANY /{proxy+}")),
                ("POST /pets/dog/1", Some("ANY /{proxy+}")),
                ("GET /", Some(DEFAULT)),
            ],
        );
        // The routes of a stack: the path of a slice with another method belongs to a view's row.
        check(
            &[
                "POST /ordering/place-order",
                "GET /{view}",
                "GET /{view}/{id+}",
                "POST /commands/{context}/{slice}",
                "GET /commands/{id}",
            ],
            &[
                ("POST /ordering/place-order", Some("POST /ordering/place-order")),
                ("GET /ordering/place-order", Some("GET /{view}/{id+}")),
                ("PUT /ordering/place-order", None),
                ("HEAD /orders", None),
                ("GET /orders", Some("GET /{view}")),
                // A variable has at least one byte.
                ("GET /orders/", None),
                ("GET /orders/a/b/", Some("GET /{view}/{id+}")),
                ("GET /commands/c1", Some("GET /commands/{id}")),
                ("GET /commands/c1/more", Some("GET /{view}/{id+}")),
                ("POST /commands/ordering/place-order", Some("POST /commands/{context}/{slice}")),
                ("POST /commands/ordering", None),
            ],
        );
        // A whole path comes before a greedy variable, whatever is to the left of it, and a method before ANY.
        check(
            &["GET /a/{rest+}", "GET /{x}/{y}", "ANY /{x}/b", "GET /{x}/b"],
            &[("GET /a/c", Some("GET /{x}/{y}")), ("GET /a/b", Some("GET /{x}/b"))],
        );
    }
}
