//! Servers in containers, where the machine has no program of its own.

use super::process::{Plan, command};
use super::{Site, programs};

/// What a server's container is made from.
#[derive(Debug)]
pub(super) struct Image {
    /// Its name, with a tag that never moves to another version.
    pub(super) name: &'static str,
    /// The port that the server listens on inside.
    pub(super) port: u16,
    /// Settings, each `NAME=value`.
    pub(super) environment: &'static [&'static str],
    /// The server's own arguments.
    pub(super) arguments: &'static [&'static str],
}

impl Image {
    /// How to run it so that it is reached on the site's port, where there is
    /// `docker`. The site's directory gives the container its name.
    pub(super) fn plan(&self, site: &Site) -> Option<Plan> {
        let docker = programs::find("docker")?;
        let name = site.home.file_name()?.to_string_lossy().into_owned();
        let publish = format!("127.0.0.1:{}:{}", site.ports[0], self.port);
        let mut create = vec!["create", "--name", &name, "--publish", &publish];
        create.extend(self.environment.iter().flat_map(|setting| ["--env", setting]));
        create.push(self.name);
        create.extend(self.arguments);
        Some(Plan {
            user: None,
            make: vec![command(&docker, &create)],
            run: command(&docker, &["start", "--attach", &name]),
            container: Some(name),
        })
    }
}
