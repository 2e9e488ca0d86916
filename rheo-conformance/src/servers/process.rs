//! [`Process`]: a server that lives in a directory of its own and ends with
//! this process, however that ends.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, io, process};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

/// Kills the server when this process is gone, and removes its directory.
const WATCHDOG: &str = include_str!("watchdog.sh");

/// How long a server may take to answer, with its recovery after a crash.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// How much of its log is shown where a server fails.
const LOG_LINES: usize = 15;

/// How to make a server and to run it.
#[derive(Debug)]
pub(super) struct Plan {
    /// Who runs it where this process is root's, whom many servers refuse to serve.
    pub(super) user: Option<&'static str>,
    /// Its container's name, where it runs in one.
    pub(super) container: Option<String>,
    /// The commands that make it.
    pub(super) make: Vec<Vec<String>>,
    /// The command that runs it in the foreground.
    pub(super) run: Vec<String>,
}

/// A program and its arguments.
pub(super) fn command(program: &Path, arguments: &[&str]) -> Vec<String> {
    let program = program.to_string_lossy().into_owned();
    std::iter::once(program).chain(arguments.iter().map(ToString::to_string)).collect()
}

/// A directory for a server, which is not there yet.
pub(super) fn home_for(label: &str) -> PathBuf {
    let unique = fastrand::u64(..);
    env::temp_dir().join(format!("rheo-{label}-{}-{unique:016x}", process::id()))
}

/// A server, running or killed.
#[derive(Debug)]
pub(super) struct Process {
    home: PathBuf,
    account: Option<(u32, u32)>,
    plan: Plan,
    watchdog: Mutex<Option<Watchdog>>,
}

impl Process {
    /// Makes it in `home`, without running it.
    pub(super) async fn make(home: PathBuf, plan: Plan) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(&home)?;
        let watchdog = Mutex::new(None);
        let mut process = Self { home, account: None, plan, watchdog };
        process.account = process.account_for_root()?;
        if let Some((user, group)) = process.account {
            chown(&process.home, Some(user), Some(group))?;
        }
        for step in &process.plan.make {
            let mut command = process.command(&step[0]);
            let output = command.args(&step[1..]).stdin(Stdio::null()).output().await?;
            if !output.status.success() {
                let told = String::from_utf8_lossy(&output.stderr);
                return Err(io::Error::other(format!("{} failed: {}", step[0], tail(&told))));
            }
        }
        Ok(process)
    }

    /// Runs it, and returns when `answers` does.
    pub(super) async fn start(&self, answers: impl Future<Output = ()>) -> io::Result<()> {
        let mut watchdog = self.watchdog.lock().await;
        if let Some(mut last) = watchdog.take() {
            last.kill_server().await?;
            last.retire().await?;
        }
        let begun = watchdog.insert(self.watchdog()?);
        let problem = tokio::select! {
            () = answers => return Ok(()),
            ended = begun.server_ended() => { ended?; "it ended at once" }
            () = tokio::time::sleep(PATIENCE) => "it does not answer",
        };
        let log = fs::read_to_string(self.home.join("log")).unwrap_or_default();
        Err(io::Error::other(format!("{problem}; its log ends: {}", tail(&log))))
    }

    /// Kills it, and returns when it is gone.
    pub(super) async fn kill(&self) -> io::Result<()> {
        match &mut *self.watchdog.lock().await {
            Some(watchdog) => watchdog.kill_server().await,
            None => Ok(()),
        }
    }

    /// Whose the server is to be, where this process is root's: the plan's
    /// user, or nobody.
    fn account_for_root(&self) -> io::Result<Option<(u32, u32)>> {
        let Some(user) = self.plan.user else { return Ok(None) };
        if fs::metadata(&self.home)?.uid() != 0 {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let account = account(&users, user).or_else(|| account(&users, "nobody"));
        account.map(Some).ok_or_else(|| io::Error::other("there is no user `nobody`"))
    }

    /// A command that runs in the server's directory under its account, beyond
    /// the reach of the terminal's Ctrl-C.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.home).env("LC_ALL", "C").process_group(0);
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        command
    }

    fn watchdog(&self) -> io::Result<Watchdog> {
        let mut command = self.command("sh");
        command.args(["-c", WATCHDOG, "watchdog"]).arg(&self.home);
        command.arg(self.plan.container.as_deref().unwrap_or_default()).args(&self.plan.run);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Watchdog { shell: command.spawn()?, killed: false })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.watchdog.get_mut().is_none() {
            // It never ran, so nobody else does. What cannot be removed is left to the system.
            let _ = fs::remove_dir_all(&self.home);
        }
    }
}

/// The shell that stands between this process and the server. Once its
/// standard input is closed, it kills the server and removes all of it.
#[derive(Debug)]
struct Watchdog {
    shell: Child,
    killed: bool,
}

impl Watchdog {
    async fn kill_server(&mut self) -> io::Result<()> {
        if !self.killed {
            self.tell().await?;
            self.killed = true;
        }
        self.server_ended().await
    }

    /// Leaves the killed server's directory to another watchdog.
    async fn retire(mut self) -> io::Result<()> {
        self.tell().await?;
        self.shell.wait().await.map(drop)
    }

    async fn tell(&mut self) -> io::Result<()> {
        match &mut self.shell.stdin {
            Some(input) => input.write_all(b"\n").await,
            None => Ok(()),
        }
    }

    /// Waits until no process of the server lives.
    async fn server_ended(&mut self) -> io::Result<()> {
        match &mut self.shell.stdout {
            Some(output) => output.read_to_end(&mut Vec::new()).await.map(drop),
            None => Ok(()),
        }
    }
}

/// The numbers of a user and its group.
fn account(users: &str, name: &str) -> Option<(u32, u32)> {
    users.lines().find_map(|line| match line.split(':').collect::<Vec<_>>()[..] {
        [user, _, id, group, ..] if user == name => Some((id.parse().ok()?, group.parse().ok()?)),
        _ => None,
    })
}

fn tail(log: &str) -> String {
    let lines: Vec<_> = log.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
