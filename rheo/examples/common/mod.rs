//! What the examples share: where to connect, and a stream of their own.

use rheo::Rheo;

/// The URL after `--url`, or else the default.
pub(crate) fn url(default: &str) -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => default.into(),
        [flag, url] if flag == "--url" => url.clone(),
        _ => {
            eprintln!("The only argument is --url URL; without it, {default} is used.");
            std::process::exit(2);
        }
    }
}

/// A name that no stream has yet: `name`, or where the store holds it from an
/// earlier run, `name-2`, `name-3` and so on. Nothing of yours is touched.
pub(crate) async fn free_name(rheo: &Rheo, name: &str) -> rheo::Result<String> {
    let taken = rheo.list_streams().await?;
    let is_free = |name: &String| taken.iter().all(|stream| stream.name.as_str() != name);
    let mut candidate = name.to_owned();
    let mut number = 2;
    while !is_free(&candidate) {
        candidate = format!("{name}-{number}");
        number += 1;
    }
    Ok(candidate)
}
