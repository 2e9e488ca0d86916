//! Rheo in one page: a stream, a group, and a consumer.
//!
//! ```sh
//! cargo run --example quickstart
//! ```

mod common;

use std::time::Duration;

use rheo::{Delivery, FetchOptions, GroupOptions, NewEvent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    customer: String,
    total: f64,
}

#[tokio::main]
async fn main() -> rheo::Result<()> {
    let rheo = rheo::connect(&common::url("memory:")).await?;

    // A stream is a log of events. A group remembers how far it has come in it.
    let stream = common::free_name(&rheo, "orders").await?;
    rheo.create_stream(&stream, 4).await?;
    rheo.create_group(&stream, "billing", GroupOptions::default()).await?;

    // Events of one key share a partition, and keep their order.
    for (customer, total) in [("Ada", 12.50), ("Bob", 80.00), ("Ada", 7.25)] {
        let order = Order { customer: customer.into(), total };
        let event = NewEvent::new("order.placed", &order).key(customer);
        let stored = rheo.append(&stream, event).await?;
        println!("appended  {}  {customer} {total:.2}", stored.position());
    }

    // A fetch lends events to us for a while. An ack says that one is done;
    // without it, the event comes back when its lease expires.
    for delivery in rheo.fetch(&stream, "billing", 2, FetchOptions::default()).await? {
        bill(delivery.clone()).await?;
        rheo.ack(&delivery).await?;
    }
    println!("lag       {}", rheo.lag(&stream, "billing").await?.total());

    // A consumer does all that by itself: it fetches, calls the handler for
    // several events at once, renews their leases meanwhile, and acks. Where
    // the handler fails, the event is retried.
    let consumer = rheo.consumer(&stream, "billing").concurrency(16).start(bill).await?;
    while rheo.lag(&stream, "billing").await?.total() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    consumer.drain(Duration::from_secs(10)).await?;
    println!("lag       {}", rheo.lag(&stream, "billing").await?.total());
    Ok(())
}

async fn bill(delivery: Delivery) -> rheo::Result<()> {
    let Order { customer, total } = delivery.event.payload_as()?;
    println!("billed    {}  {customer} {total:.2}", delivery.event.position());
    Ok(())
}
