//! [`Cluster`]: which node serves which slot, and what to do where another does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use futures::future::select_ok;
use redis::{ServerError, Value, cmd};
use rheo_core::Result;
use tokio::time::sleep;

use super::batch::{Answer, Batch};
use super::line::Line;
use super::node::{Node, Patience};
use super::slot::slot_of;
use crate::connect::address::{Access, Address, Place};
use crate::error::Failure;

/// How often a batch is sent, at most: where nothing ran, it was sent to the
/// wrong node, or the right one is not there yet.
const TRIES: u32 = 6;

/// The nodes of a cluster.
///
/// What was sent and has no answer is never sent again here: it may have run.
/// Only what a node refused before anything ran goes elsewhere, or a little
/// later.
#[derive(Debug)]
pub(crate) struct Cluster {
    access: Access,
    seeds: Vec<Place>,
    patience: Patience,
    nodes: Mutex<HashMap<Place, Arc<Node>>>,
    map: RwLock<Arc<Map>>,
    /// Whose turn it is to read the map anew.
    reading: tokio::sync::Mutex<()>,
}

/// Which node serves which slots.
#[derive(Debug, Default)]
struct Map {
    /// First slot, last slot, node; in order.
    ranges: Vec<(u16, u16, Arc<Node>)>,
    /// Who can be asked where those are gone.
    replicas: HashSet<Place>,
}

impl Map {
    fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        let next = self.ranges.partition_point(|(_, last, _)| *last < slot);
        self.ranges.get(next).filter(|(first, ..)| *first <= slot).map(|(.., node)| node)
    }

    fn places(&self) -> HashSet<Place> {
        self.ranges.iter().map(|(.., node)| node.place().clone()).collect()
    }
}

/// Why a batch did not run where it was sent, and what helps.
#[derive(Debug, PartialEq, Eq)]
enum Detour {
    /// Another node serves the slot.
    Moved(Place),
    /// Another node takes over the slot, and has these keys already.
    Ask(Place),
    /// It passes.
    Later,
    /// The node is not there: another may have taken its place.
    Gone,
}

impl Cluster {
    pub(super) fn new(address: &Address, patience: Patience) -> Self {
        Self {
            access: address.access.clone(),
            seeds: address.places.clone(),
            patience,
            nodes: Mutex::default(),
            map: RwLock::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a batch to the node that serves its keys.
    pub(super) async fn send(&self, batch: &Batch<'_>) -> Result<Vec<Answer>, Failure> {
        let slot = batch.first().map_or(0, slot_of);
        let mut redirected = None;
        let mut tries = 0;
        loop {
            let map = self.map();
            let (node, asking) = match redirected.take() {
                Some(redirected) => redirected,
                None => match map.owner(slot) {
                    Some(node) => (Arc::clone(node), false),
                    None => (self.find_owner(&map, slot).await?, false),
                },
            };
            let sent = node.send(&batch.asking(asking)).await;
            let Some(detour) = Detour::of(&sent, node.place()) else {
                return sent;
            };
            tries += 1;
            if tries == TRIES {
                return sent;
            }
            match detour {
                Detour::Ask(place) => redirected = Some((self.node(&place)?, true)),
                Detour::Moved(place) => {
                    // Where the map cannot be read, the hint will do.
                    let _ = self.read_map(&map).await;
                    redirected = Some((self.node(&place)?, false));
                }
                Detour::Later => {
                    sleep(pause(tries)).await;
                    let _ = self.read_map(&map).await;
                }
                Detour::Gone => {
                    let _ = self.read_map(&map).await;
                    if self.map().owner(slot).is_none_or(|owner| Arc::ptr_eq(owner, &node)) {
                        return sent;
                    }
                }
            }
        }
    }

    /// The nodes that serve slots.
    pub(super) async fn primaries(&self) -> Result<Vec<Arc<Node>>, Failure> {
        self.read_map(&self.map()).await?;
        self.map().places().iter().map(|place| self.node(place)).collect()
    }

    async fn find_owner(&self, seen: &Arc<Map>, slot: u16) -> Result<Arc<Node>, Failure> {
        self.read_map(seen).await?;
        self.map().owner(slot).cloned().ok_or(Failure::Unserved)
    }

    fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What this guards is whole after each statement.
    fn nodes(&self) -> MutexGuard<'_, HashMap<Place, Arc<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node at this place, known or new.
    fn node(&self, place: &Place) -> Result<Arc<Node>, Failure> {
        let mut nodes = self.nodes();
        if let Some(node) = nodes.get(place) {
            return Ok(Arc::clone(node));
        }
        let client = self.access.client(place).map_err(Failure::Unreachable)?;
        let node = Arc::new(Node::new(client, place.clone(), self.patience));
        nodes.insert(place.clone(), Arc::clone(&node));
        Ok(node)
    }

    /// Learns anew which node serves what, unless another did since this map
    /// was seen.
    async fn read_map(&self, seen: &Arc<Map>) -> Result<(), Failure> {
        let _turn = self.reading.lock().await;
        if !Arc::ptr_eq(&self.map(), seen) {
            return Ok(());
        }
        let mut known = seen.places();
        known.extend(self.seeds.iter().cloned());
        let map = match self.ask_for_map(&known).await {
            Err(_) if !seen.replicas.is_empty() => self.ask_for_map(&seen.replicas).await?,
            map => map?,
        };
        known.extend(map.places());
        self.nodes().retain(|place, _| known.contains(place));
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        Ok(())
    }

    /// What the first of the nodes says that answers.
    async fn ask_for_map(&self, places: &HashSet<Place>) -> Result<Map, Failure> {
        let nodes: Vec<_> =
            places.iter().map(|place| self.node(place)).collect::<Result<_, _>>()?;
        let answers = nodes.into_iter().map(|node| Box::pin(self.ask(node)));
        let (map, _) = select_ok(answers).await?;
        Ok(map)
    }

    async fn ask(&self, node: Arc<Node>) -> Result<Map, Failure> {
        let mut slots = cmd("CLUSTER");
        slots.arg("SLOTS");
        let answers = node.send(&Batch::reads(&[&slots])).await?;
        let lines = match answers.into_iter().next() {
            Some(Ok(Value::Array(lines))) => lines,
            Some(Err(error)) => return Err(Failure::Refused(error)),
            _ => return Err(Failure::Unserved),
        };
        let mut map = Map::default();
        for Line { first, last, primary, replicas } in
            lines.iter().filter_map(|line| Line::read(line, node.place()))
        {
            map.ranges.push((first, last, self.node(&primary)?));
            map.replicas.extend(replicas);
        }
        map.ranges.sort_by_key(|(first, ..)| *first);
        if map.ranges.is_empty() { Err(Failure::Unserved) } else { Ok(map) }
    }
}

impl Detour {
    /// What to do where nothing ran for now.
    fn of(sent: &Result<Vec<Answer>, Failure>, place: &Place) -> Option<Self> {
        let refused = match sent {
            Err(Failure::Unreachable(_)) => return Some(Self::Gone),
            Err(Failure::Refused(refused)) => refused,
            // A lone command is refused by itself; of a transaction's all ran.
            Ok(answers) if answers.len() == 1 => answers[0].as_ref().err()?,
            _ => return None,
        };
        match refused.code() {
            "MOVED" => to(refused, place).map(Self::Moved),
            "ASK" => to(refused, place).map(Self::Ask),
            "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" => Some(Self::Later),
            _ => None,
        }
    }
}

/// Where a node sends us, as in `3999 127.0.0.1:6381`.
fn to(refused: &ServerError, told_by: &Place) -> Option<Place> {
    let (_slot, place) = refused.details()?.split_once(' ')?;
    let (host, port) = place.rsplit_once(':')?;
    let host = if host.is_empty() { &told_by.host } else { host };
    Some(Place { host: host.into(), port: port.parse().ok()? })
}

/// Those who wait for the same do not all come at the same time.
fn pause(tries: u32) -> Duration {
    let most = 20 << tries.min(6);
    Duration::from_millis(fastrand::u64(most / 2..most))
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn here() -> Place {
        Place { host: "here".into(), port: 1 }
    }

    fn place(host: &str, port: u16) -> Place {
        Place { host: host.into(), port }
    }

    fn refused(line: &str) -> ServerError {
        match parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap() {
            Value::ServerError(error) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_ran_nowhere_is_sent_elsewhere_or_later() {
        let alone = |line| Detour::of(&Ok(vec![Err(refused(line))]), &here());
        assert_eq!(alone("MOVED 3999 b:2"), Some(Detour::Moved(place("b", 2))));
        assert_eq!(alone("MOVED 3999 :2"), Some(Detour::Moved(place("here", 2))));
        assert_eq!(alone("ASK 3999 ::1:2"), Some(Detour::Ask(place("::1", 2))));
        assert_eq!(alone("TRYAGAIN of it"), Some(Detour::Later));
        assert_eq!(alone("ERR of it"), None);
        assert_eq!(alone("MOVED nowhere"), None);
        let whole = Err(Failure::Refused(refused("CLUSTERDOWN the cluster is down")));
        assert_eq!(Detour::of(&whole, &here()), Some(Detour::Later));
    }

    #[test]
    fn what_may_have_run_is_not_sent_again() {
        assert_eq!(Detour::of(&Err(Failure::Late), &here()), None);
        assert_eq!(Detour::of(&Ok(vec![Ok(Value::Okay)]), &here()), None);
        let some_ran = Ok(vec![Ok(Value::Okay), Err(refused("MOVED 3999 b:2"))]);
        assert_eq!(Detour::of(&some_ran, &here()), None);
    }
}
