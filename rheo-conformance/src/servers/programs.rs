//! Where this machine has programs, and which ports are free.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The ports tried: below those that systems give to outgoing connections,
/// which could take a server's port while it is down.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Where Debian keeps servers off the path of users.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A program on the path or in the system's directories, links resolved, so
/// that what belongs to it lies beside it.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    find_named(program).and_then(|path| fs::canonicalize(path).ok())
}

/// The same by the name that it is found under, which tells some programs what
/// they are to be.
pub(super) fn find_named(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    look_in(env::split_paths(&path).chain(SYSTEM.map(PathBuf::from)), program)
}

/// A program in one of these directories, links resolved.
pub(super) fn find_in(
    directories: impl IntoIterator<Item = PathBuf>,
    program: &str,
) -> Option<PathBuf> {
    look_in(directories, program).and_then(|path| fs::canonicalize(path).ok())
}

fn look_in(directories: impl IntoIterator<Item = PathBuf>, program: &str) -> Option<PathBuf> {
    let mut found = directories.into_iter().map(|directory| directory.join(program));
    found.find(|path| path.is_file())
}

/// The directories `bin` of all versions installed below `root`, newest first.
pub(super) fn versions_in(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut versions: Vec<_> = entries.map(|entry| entry.path()).collect();
    versions.sort_by_key(|path| std::cmp::Reverse(version(path)));
    versions.into_iter().map(|path| path.join("bin")).collect()
}

/// So many ports of this machine that nobody listens on.
pub(super) fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let ports = std::iter::repeat_with(|| fastrand::u16(PORTS)).take(100 * count);
    // Each is held until the last one is found, so that they differ.
    let free = ports.filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    let held: Vec<_> = free.take(count).collect();
    match held.len() == count {
        true => held.iter().map(|listener| Ok(listener.local_addr()?.port())).collect(),
        false => Err(io::Error::other("no port is free")),
    }
}
