//! The page and its files: policies, cache, and no request to anywhere else.

use std::collections::BTreeSet;

use simstore_server::AccessToken;

use crate::support::{TestService, create_similar};

/// The addresses that a file of the page loads: after `src=`, `href=` and `from`.
fn loaded(content: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for before in ["src=\"", "href=\"", "from \"", "url("] {
        found.extend(content.split(before).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()));
    }
    found.retain(|address| !address.starts_with('#'));
    found
}

#[test]
fn the_page_loads_its_own_files_alone() {
    let token = |text: &str| Some(AccessToken::new(text).unwrap());
    let service = TestService::start(
        |path| create_similar(path, true),
        |config| {
            (config.read_token, config.write_token) =
                (token("read-token-0123456789"), token("write-token-0123456789"));
        },
    );
    let (mut waiting, mut seen) = (vec!["/".to_owned()], BTreeSet::new());
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        // The page needs no token: it contains nothing of the store.
        let response = service.request("GET", &path).send().unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}");
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        for part in
            ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(
            (&*header("x-content-type-options"), &*header("referrer-policy")),
            ("nosniff", "no-referrer")
        );
        let (tag, media_type) = (header("etag"), header("content-type"));
        let expected = match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(media_type, expected, "{path}");
        let known = service.request("GET", &path).header("if-none-match", &tag).send().unwrap();
        assert_eq!(known.status().as_u16(), 304, "{path}");
        assert_eq!(known.headers()["etag"], tag);
        let changed = service.request("GET", &path).header("if-none-match", "\"0\"").send().unwrap();
        assert_eq!(changed.status().as_u16(), 200);
        let content = response.text().unwrap();
        assert!(!content.contains("innerHTML") && !content.contains("insertAdjacentHTML"), "{path}");
        for address in loaded(&content) {
            let path = address.strip_prefix("./").map_or(address.clone(), |name| format!("/page/{name}"));
            assert!(path.starts_with("/page/"), "{address}");
            waiting.push(path);
        }
    }
    // Every file is reachable from the page.
    let source = include_str!("../src/page/mod.rs");
    let list = source.split_once("page_files![").unwrap().1.split_once("];").unwrap().0;
    let files = list.split('"').skip(1).step_by(2).map(|name| format!("/page/{name}"));
    assert_eq!(files.chain(["/".to_owned()]).collect::<BTreeSet<_>>(), seen);
    for name in ["/page/", "/page/nothing.js", "/page/..%2fmain.js", "/page/mod.rs", "/page/%ff"] {
        let status = service.request("GET", name).header("authorization", "Bearer read-token-0123456789");
        let status = status.send().unwrap().status().as_u16();
        assert!([400, 404].contains(&status), "{name}: {status}");
    }
}
