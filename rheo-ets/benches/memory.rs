//! How much memory an event takes beyond its own text, indexes included.

mod common;

use rheo_core::{Result, Rheo};
use rheo_ets::Memory;

const BATCHES: u64 = 10_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    for (what, keys) in [("1000 keys", 1000), ("each event its own key", u64::MAX)] {
        let rheo = Rheo::builder(Memory::new()).build().await?;
        rheo.create_stream("bench", 1).await?;
        let before = resident_bytes();
        let mut text = 0;
        for number in 0..BATCHES {
            let stored = rheo.append_batch("bench", common::batch(number, keys)).await?;
            text += stored.iter().map(|event| event.body().encoded_len()).sum::<usize>();
        }
        let beyond = resident_bytes().saturating_sub(before).saturating_sub(text);
        let events = usize::try_from(BATCHES * common::BATCH).unwrap_or(usize::MAX);
        println!("{what}: {} bytes per event beyond its {}", beyond / events, text / events);
        // Given back memory would be counted as free room by the next round.
        std::mem::forget(rheo);
    }
    Ok(())
}

/// What the system says this process holds; 0 where it does not say.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kib.unwrap_or(0) * 1024
}
