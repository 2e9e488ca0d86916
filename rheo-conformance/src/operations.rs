//! Every operation of the handle, for the cases that try them all.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use rheo_core::{
    Confirm, FetchOptions, GroupOptions, Lease, NewEvent, Query, Replay, ReplayOptions, Result,
    Rheo, Start,
};
use serde_json::json;

/// What an operation needs to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Stream,
    Group,
    Lease,
}

/// An operation, ready to be tried.
pub(crate) struct Operation {
    /// Its method's name.
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    /// Whether it changes the store.
    pub(crate) writes: bool,
    pub(crate) call: BoxFuture<'static, Result<()>>,
}

/// All operations that the backend does not refuse, on a stream, a group and,
/// where there is one, a lease.
pub(crate) fn operations(
    rheo: &Rheo,
    stream: &'static str,
    group: &'static str,
    lease: Option<&Lease>,
) -> Vec<Operation> {
    let mut all = streams(rheo, stream);
    all.extend(events(rheo, stream));
    all.extend(groups(rheo, stream, group));
    if rheo.capabilities().guarantees.replay {
        all.extend(replays(rheo, stream, group));
    }
    all.extend(lease.into_iter().flat_map(|lease| leases(rheo, lease)));
    all
}

fn operation<F: Future<Output = Result<()>> + Send + 'static>(
    name: &'static str,
    needs: Needs,
    writes: bool,
    rheo: &Rheo,
    call: impl FnOnce(Rheo) -> F,
) -> Operation {
    let call = Box::pin(call(rheo.clone()));
    Operation { name, needs, writes, call }
}

fn streams(rheo: &Rheo, stream: &'static str) -> Vec<Operation> {
    use Needs::{Nothing, Stream};
    vec![
        operation("ping", Nothing, false, rheo, |rheo| async move { rheo.ping().await.map(drop) }),
        operation("list_streams", Nothing, false, rheo, |rheo| async move {
            rheo.list_streams().await.map(drop)
        }),
        operation("create_stream", Nothing, true, rheo, |rheo| async move {
            rheo.create_stream("another", 1).await
        }),
        operation("delete_stream", Stream, true, rheo, move |rheo| async move {
            rheo.delete_stream(stream, Confirm::Yes).await
        }),
        operation("partitions", Stream, false, rheo, move |rheo| async move {
            rheo.partitions(stream).await.map(drop)
        }),
        operation("list_groups", Stream, false, rheo, move |rheo| async move {
            rheo.list_groups(stream).await.map(drop)
        }),
        operation("create_group", Stream, true, rheo, move |rheo| async move {
            rheo.create_group(stream, "another", GroupOptions::default()).await
        }),
    ]
}

fn events(rheo: &Rheo, stream: &'static str) -> Vec<Operation> {
    use Needs::Stream;
    let event = || NewEvent::new("tried", json!(1));
    vec![
        operation("append", Stream, true, rheo, move |rheo| async move {
            rheo.append(stream, event()).await.map(drop)
        }),
        operation("append_batch", Stream, true, rheo, move |rheo| async move {
            rheo.append_batch(stream, vec![event(), event()]).await.map(drop)
        }),
        operation("read", Stream, false, rheo, move |rheo| async move {
            rheo.read(stream, 0, 0, 10).await.map(drop)
        }),
        operation("query", Stream, false, rheo, move |rheo| async move {
            rheo.query(stream, &Query::new()).await.map(drop)
        }),
        operation("query_page", Stream, false, rheo, move |rheo| async move {
            rheo.query_page(stream, &Query::new(), None).await.map(drop)
        }),
    ]
}

fn groups(rheo: &Rheo, stream: &'static str, group: &'static str) -> Vec<Operation> {
    use Needs::Group;
    vec![
        operation("fetch", Group, true, rheo, move |rheo| async move {
            rheo.fetch(stream, group, 1, FetchOptions::default()).await.map(drop)
        }),
        operation("lag", Group, false, rheo, move |rheo| async move {
            rheo.lag(stream, group).await.map(drop)
        }),
        operation("group_info", Group, false, rheo, move |rheo| async move {
            rheo.group_info(stream, group).await.map(drop)
        }),
        operation("dead_letters", Group, false, rheo, move |rheo| async move {
            rheo.dead_letters(stream, group, 10, None).await.map(drop)
        }),
        operation("wait", Group, false, rheo, move |rheo| async move {
            rheo.wait(stream, group, Duration::from_millis(1)).await
        }),
        operation("delete_group", Group, true, rheo, move |rheo| async move {
            rheo.delete_group(stream, group, Confirm::Yes).await
        }),
    ]
}

fn replays(rheo: &Rheo, stream: &'static str, group: &'static str) -> Vec<Operation> {
    use Needs::Group;
    vec![
        operation("replay", Group, true, rheo, move |rheo| async move {
            let options = ReplayOptions::default();
            rheo.replay(stream, group, Replay::AfterSequence(0), options).await
        }),
        operation("reset_group", Group, true, rheo, move |rheo| async move {
            rheo.reset_group(stream, group, Confirm::Yes, Start::Beginning).await
        }),
    ]
}

fn leases(rheo: &Rheo, lease: &Lease) -> Vec<Operation> {
    let on_lease = |name, act: fn(Rheo, Lease) -> BoxFuture<'static, Result<()>>| {
        let lease = lease.clone();
        operation(name, Needs::Lease, true, rheo, move |rheo| act(rheo, lease))
    };
    vec![
        on_lease("ack", |rheo, lease| Box::pin(async move { rheo.ack(lease).await })),
        on_lease("retry", |rheo, lease| {
            Box::pin(async move { rheo.retry(lease, "later", Duration::ZERO).await })
        }),
        on_lease("reject", |rheo, lease| {
            Box::pin(async move { rheo.reject(lease, "never").await })
        }),
        on_lease("release", |rheo, lease| Box::pin(async move { rheo.release(lease).await })),
        on_lease("renew", |rheo, lease| {
            Box::pin(async move { rheo.renew(lease, Duration::from_secs(5)).await.map(drop) })
        }),
    ]
}
