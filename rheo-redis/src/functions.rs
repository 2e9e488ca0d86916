//! The library of functions that runs inside the server.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

/// The files of the library. `state.lua` comes first: the others call it.
const FILES: &[&str] = &[
    include_str!("lua/state.lua"),
    include_str!("lua/stream.lua"),
    include_str!("lua/group.lua"),
    include_str!("lua/log.lua"),
    include_str!("lua/claim.lua"),
    include_str!("lua/settle.lua"),
    include_str!("lua/replay.lua"),
    include_str!("lua/inspect.lua"),
];

/// The library's name. It names the code's own digest, so that instances of
/// different versions of Rheo on one server each find theirs.
static NAME: LazyLock<String> =
    LazyLock::new(|| format!("rheo_{:016x}", xxh3_64(FILES.concat().as_bytes())));

/// The name under which the server knows the library.
pub(crate) fn library() -> &'static str {
    &NAME
}

/// The library as the server takes it. In the files `LIB_` stands for its name
/// and an underscore, since functions of all libraries share one set of names.
pub(crate) fn source() -> String {
    let code = FILES.concat().replace("LIB_", &format!("{}_", *NAME));
    format!("#!lua name={}\n{code}", *NAME)
}

/// The name under which the server knows a function.
pub(crate) fn full_name(function: &str) -> String {
    format!("{}_{function}", *NAME)
}
