#[tokio::main]
async fn main() {
    for url in std::env::args().skip(1) {
        let t = std::time::Instant::now();
        match rheo_mongo::Mongo::connect(&url).await {
            Ok(m) => println!("OK {m:?}"),
            Err(e) => println!("{e:?}\n  -> {e}"),
        }
        println!("{:?}", t.elapsed());
    }
}
