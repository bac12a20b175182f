//! The web page, as it was built into the program.

use grove_host::server::{Asset, Caching, WebPage};

/// Path, tag and content of each file, put together by `build.rs`.
const FILES: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// What stands in the page's place in a program that was built without it.
const NOT_BUILT: &str = "The page was not built: run `make web`, then build Grove again.\n";

pub(crate) fn page() -> WebPage {
    let built = FILES.iter().map(|(path, tag, content)| {
        // Vite puts what it names after its content into this folder.
        let caching = if path.starts_with("assets/") { Caching::Immutable } else { Caching::Revalidated };
        let asset = Asset { content: (*content).into(), content_type: content_type(path), tag: (*tag).into(), caching };
        ((*path).into(), asset)
    });
    let not_built = (!FILES.iter().any(|(path, ..)| *path == "index.html")).then(|| {
        let asset = Asset {
            content: NOT_BUILT.into(),
            content_type: content_type("not-built.txt"),
            tag: "not-built".into(),
            caching: Caching::Revalidated,
        };
        ("index.html".into(), asset)
    });
    WebPage::new(built.chain(not_built))
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
