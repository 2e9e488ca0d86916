//! How many documents one claim and one settle read and write.

use ratios::{claim, fill};
use rheo_core::{Outcome, Rheo};

use crate::counter::{Counter, Counts};
use crate::place::{Place, create, delete};

/// How many events are claimed and settled at once.
const SIZES: [u64; 3] = [10, 100, 1000];

pub(crate) async fn measure(place: &Place) {
    let counter = Counter::default();
    let rheo = place.counted(&counter).await;
    println!("\nWhat the server's answers say, in all:\n");
    println!(
        "| work | commands | events returned | other documents returned | documents written |"
    );
    println!("|---|---:|---:|---:|---:|");
    for size in SIZES {
        let stream = format!("documents-{size}");
        create(&rheo, &stream).await;
        fill(&rheo, &stream, 1, size * 2).await;
        // The first does not count: the handle learns of the stream.
        counted(&rheo, &stream, size, &counter).await;
        let counts = counted(&rheo, &stream, size, &counter).await;
        for (work, count) in ["claim", "settle"].into_iter().zip(counts) {
            println!(
                "| {work} of {size} | {} | {} | {} | {} |",
                count.commands, count.events, count.others, count.written
            );
        }
        delete(&rheo, &stream).await;
    }
}

/// What one claim and one settle of so many events cost.
async fn counted(rheo: &Rheo, stream: &str, size: u64, counter: &Counter) -> [Counts; 2] {
    counter.take();
    let deliveries = claim(rheo, stream, "group", size).await;
    assert_eq!(deliveries.len() as u64, size);
    let claimed = counter.take();
    let acks = deliveries.iter().map(|delivery| (delivery, Outcome::Ack));
    for answer in rheo.settle(acks).await {
        answer.expect("settled");
    }
    [claimed, counter.take()]
}
