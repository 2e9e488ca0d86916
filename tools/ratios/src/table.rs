//! The table of results.

use crate::median;

/// What is compared with what.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// What is done.
    pub name: &'a str,
    /// What both numbers count.
    pub unit: &'a str,
    /// What the ratio ought to be.
    pub target: &'a str,
}

/// Prints the head of a table, under a line of its own.
pub fn begin(title: &str) {
    println!("\n{title}\n");
    println!("| row | bare, or before | Rheo, or after | unit | ratio | target |");
    println!("|---|---:|---:|---|---:|---|");
}

impl Row<'_> {
    /// Prints pairs: the side that is compared with, and the side that is
    /// measured. A ratio is the median, beside the least and the greatest.
    pub fn print(&self, pairs: &[(f64, f64)]) {
        let mut ratios: Vec<f64> = pairs.iter().map(|(base, ours)| ours / base).collect();
        ratios.sort_by(f64::total_cmp);
        let base = median(pairs.iter().map(|pair| pair.0).collect());
        let ours = median(pairs.iter().map(|pair| pair.1).collect());
        let (least, greatest) = (ratios[0], ratios[ratios.len() - 1]);
        println!(
            "| {} | {base:.0} | {ours:.0} | {} | **{:.2}** ({least:.2} to {greatest:.2}) | {} |",
            self.name,
            self.unit,
            median(ratios),
            self.target
        );
    }
}
