//! Ids that come of a text, always the same.

use uuid::Uuid;

/// A UUID as it is; of any other text a UUID of version 5, so that other
/// programs can make the same: its namespace is the version 5 of
/// `rheo:STREAM` in the namespace of URLs.
pub(super) fn id(stream: &str, text: &str) -> Uuid {
    Uuid::try_parse(text).unwrap_or_else(|_| {
        let of_stream = format!("rheo:{stream}");
        let namespace = Uuid::new_v5(&Uuid::NAMESPACE_URL, of_stream.as_bytes());
        Uuid::new_v5(&namespace, text.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden vectors, from Python's `uuid5`: should one change, files that
    /// were appended before would go in twice.
    #[test]
    fn the_same_text_is_the_same_id_for_ever() {
        let id = |text| id("orders", text).to_string();
        assert_eq!(id("A-17"), "19cba1a5-b2af-52d7-b43e-ab3adb866b06");
        assert_eq!(id(r#"["A","17"]"#), "599ef5df-87f3-5ca0-afc8-1d5523c1d4c4");
        let uuid = "0198c5a0-0000-7000-8000-000000000001";
        assert_eq!(id(uuid), uuid);
    }
}
