//! Connecting: what is refused, how it is told, and what is made.

#![cfg(unix)]

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use rheo_conformance::servers::{self, Mongo as Server};
use rheo_core::backend::Backend;
use rheo_core::{Error, ErrorKind, NewEvent, Rheo};
use rheo_mongo::mongodb::bson::{Document, doc};
use rheo_mongo::mongodb::{Client, Database};
use rheo_mongo::{Mongo, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Nobody listens at this port.
const NOBODY: &str = "mongodb://ada:hush@127.0.0.1:9/shop";

fn quickly() -> Options {
    Options::default().connect_timeout(Duration::from_millis(500))
}

async fn refused(url: &str) -> Error {
    Mongo::connect_with(url, quickly()).await.unwrap_err()
}

/// A database as people see it, in a server that has one.
async fn database_of(server: &Server) -> Database {
    let client = Client::with_uri_str(server.url()).await.unwrap();
    client.default_database().unwrap()
}

async fn indexes_of(database: &Database) -> Vec<String> {
    let mut found = Vec::new();
    for name in database.list_collection_names().await.unwrap() {
        let indexes = database.collection::<Document>(&name).list_index_names().await.unwrap();
        found.extend(indexes.into_iter().map(|index| format!("{name}.{index}")));
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_standalone_is_refused_with_what_to_do() {
    let Some(server) = servers::found("mongo", Server::standalone().await) else { return };
    let error = refused(server.url()).await;
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.context().contains("--replSet NAME and run rs.initiate()"), "{error}");

    let address = server.url().split(['/', '?']).nth(2).unwrap();
    let error = refused(&format!("mongodb://{address}/shop?replicaSet=rs")).await;
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.context().contains("replicaSet"), "{error}");
}

#[tokio::test]
async fn where_no_server_is_that_is_told() {
    let error = refused(NOBODY).await;
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, "connect"));
    let expected = "MongoDB at 127.0.0.1:9, database \"shop\": no server answers there";
    assert_eq!(error.context(), expected);
    assert!(!format!("{error:?}").contains("hush"));

    let error = refused("mongodb://nowhere.invalid/shop").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.context().contains("nowhere.invalid:27017"), "{error}");
    assert!(error.context().ends_with("the host's name leads to no address"), "{error}");
}

#[tokio::test]
async fn what_is_wrong_with_a_url_is_told() {
    for (url, told) in [
        ("postgres://h/d", "is not like mongodb://"),
        ("mongodb://h", "names no database: mongodb://host/database"),
        ("mongodb://h/d?colour=red", "unknown option \"colour\""),
        ("mongodb://h/d?tls=maybe", "tls"),
        ("mongodb://h/d?collection_prefix=$", "collection_prefix"),
    ] {
        let error = refused(url).await;
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Config, "connect"));
        assert!(error.context().contains(told), "{error}");
    }
}

/// Where somebody listens who answers all alike, and then says no more.
async fn answering(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer).await;
        }
    });
    address
}

#[tokio::test]
async fn who_encrypts_and_who_does_not_are_told_apart() {
    for answer in [&b""[..], b"no TLS at all"] {
        let address = answering(answer).await;
        let error = refused(&format!("mongodb://{address}/shop?tls=true")).await;
        assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
        assert!(error.context().ends_with("tls=true is for a server that encrypts"), "{error}");
    }
    let address = answering(b"").await;
    let error = refused(&format!("mongodb://{address}/shop")).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.context().contains("closed the connection at once: tls=true"), "{error:?}");
}

#[tokio::test]
async fn secrets_are_shown_nowhere() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let login = server.url().replacen("mongodb://", "mongodb://ada:hush@", 1);
    let shown = match Mongo::connect_with(&login, quickly()).await {
        Ok(mongo) => format!("{mongo:?}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.context().contains("the user or the password is wrong"), "{error}");
            format!("{error:?}")
        }
    };
    assert!(!shown.contains("hush"), "{shown}");
}

#[tokio::test]
async fn a_client_of_the_host_is_used_and_left_open() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    // What would spoil snapshots and transactions, if it counted.
    let url = format!("{}&readConcernLevel=local&readPreference=secondaryPreferred", server.url());
    let client = Client::with_uri_str(url).await.unwrap();
    let mongo = Mongo::on_client(client.clone(), "shop", Options::default()).await.unwrap();
    let rheo = Rheo::builder(mongo.clone()).build().await.unwrap();
    rheo.create_stream("orders", 1).await.unwrap();
    let event = rheo.append("orders", NewEvent::new("order.placed", 7)).await.unwrap();
    assert_eq!(rheo.read("orders", 0, 0, 1).await.unwrap(), [event]);

    mongo.close().await;
    let streams = client.database("shop").collection::<Document>("rheo_streams");
    assert_eq!(streams.count_documents(doc! {}).await.unwrap(), 1);
    assert!(mongo.ping().await.is_ok(), "it is not closed");

    let error = Mongo::on_client(client, "a.b", Options::default()).await.unwrap_err();
    assert!(error.context().contains("database \"a.b\""), "{error}");
}

#[tokio::test]
async fn what_is_closed_is_unavailable() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let mongo = Mongo::connect(server.url()).await.unwrap();
    let product = mongo.ping().await.unwrap().product;
    assert!(["MongoDB", "SecantusDB"].contains(&&*product), "{product}");
    mongo.close().await;
    mongo.close().await;
    let error = mongo.ping().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.context(), "the client is shut down");
}

#[tokio::test]
async fn many_can_begin_at_once() {
    let Some(server) = servers::found("mongo", Server::private().await) else { return };
    let begin = || async {
        let mongo = Mongo::connect(server.url()).await.unwrap();
        mongo.prepare().await
    };
    for began in join_all((0..32).map(|_| begin())).await {
        began.unwrap();
    }
    let database = database_of(&server).await;
    let made = indexes_of(&database).await;
    for index in ["rheo_streams._id_", "rheo_runs.by_due", "rheo_events.by_correlation_id"] {
        assert!(made.iter().any(|name| name == index), "{index} in {made:?}");
    }
    begin().await.unwrap();
    assert_eq!(indexes_of(&database).await, made);
}

#[tokio::test]
async fn a_newer_layout_is_refused() {
    let Some(server) = servers::found("mongo", Server::private().await) else { return };
    let mongo = Mongo::connect(server.url()).await.unwrap();
    mongo.prepare().await.unwrap();
    let schema = database_of(&server).await.collection::<Document>("rheo_schema");
    let newer = doc! { "$set": { "version": 2 } };
    schema.update_one(doc! { "_id": "rheo" }, newer).await.unwrap();

    let told = "were made by a newer Rheo (layout 2; this one knows 1)";
    let late = mongo.prepare().await.unwrap_err();
    assert!(late.kind() == ErrorKind::Config && late.context().contains(told), "{late}");
    let error = refused(server.url()).await;
    assert!(error.kind() == ErrorKind::Config && error.context().contains(told), "{error}");
}
