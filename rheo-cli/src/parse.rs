//! What people write on the command line: filters, instants, durations.

use std::time::Duration;

use rheo::{Condition, Field, Filter, Timestamp};
use serde_json::Value;
use uuid::Uuid;

/// How filters are written, for `--help`.
pub(crate) const FILTERS: &str = r#"Only events for which this holds; of several, all must hold

type=price, key=AAPL, 'sequence>17': a field of the event itself: id, type, key, partition, sequence or timestamp ('timestamp>=15m' is the last 15 minutes)
producer=pricing: the lineage: correlation_id, causation_id, producer, schema or schema_version
metadata.region=eu, payload.order.total=25: a part of the metadata or of the payload
'price>2': any other name is a field of the payload, as in 'payload.price>2'
currency=EUR,USD: one of several
discount?: it is there, be it null

The signs are =, <, <=, > and >=; quote them for the shell, which reads < and > as files. In metadata and payload a number, true, false or null is meant as such, and so is a JSON array or object; everything else is text. Quotes make text of anything and keep commas: 'zip="01234"', 'city="Paris, TX"'. They also keep dots, and names that would mean something else: 'payload."a.b"=1', '"type"=x'"#;

/// A sign between field and value, and the condition that it makes.
type Sign = (&'static str, fn(Value) -> Condition);

/// The signs of an order; the longer ones first.
const ORDERS: [Sign; 4] = [
    (">=", Condition::GreaterOrEqual),
    ("<=", Condition::LessOrEqual),
    (">", Condition::Greater),
    ("<", Condition::Less),
];

const LINEAGE: [&str; 5] =
    ["correlation_id", "causation_id", "producer", "schema", "schema_version"];

/// Reads a filter such as `type=price` or `payload.order.total>2`.
///
/// # Errors
/// What is wrong with it, and how filters look.
pub(crate) fn filter(text: &str) -> Result<Filter, String> {
    let read = || {
        let (steps, rest) = steps(text)?;
        let (field, content) = field(steps)?;
        let condition = condition(content, rest.trim())?;
        Ok(Filter::new(field, condition))
    };
    read().map_err(|why: String| {
        format!("{why}; filters are like type=price, 'price>2', currency=EUR,USD or discount?")
    })
}

/// One key of a path.
struct Step {
    key: String,
    /// Then it is the payload's, whatever else the name means.
    quoted: bool,
}

/// The keys at the start of a filter, and what follows them.
fn steps(text: &str) -> Result<(Vec<Step>, &str), String> {
    let mut steps = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let (step, after) = step(rest)?;
        steps.push(step);
        match after.strip_prefix('.') {
            Some(more) => rest = more,
            None => return Ok((steps, after)),
        }
    }
}

fn step(text: &str) -> Result<(Step, &str), String> {
    if text.starts_with('"') {
        let (key, after) = json(text)?;
        let key = key.as_str().unwrap_or_default().to_string();
        return Ok((Step { key, quoted: true }, after));
    }
    let end = text.find(['.', '=', '<', '>', '!', '?']).unwrap_or(text.len());
    let (key, after) = text.split_at(end);
    match key.trim_end() {
        "" => Err("the name of a field is missing".into()),
        key => Ok((Step { key: key.into(), quoted: false }, after)),
    }
}

/// What can stand in a field, and thus what a value means there.
#[derive(Clone, Copy)]
enum Content {
    Json,
    Text,
    Number,
    Instant,
    Id,
}

fn field(steps: Vec<Step>) -> Result<(Field, Content), String> {
    let plain = steps.first().filter(|step| !step.quoted).map(|step| step.key.clone());
    let name = plain.as_deref().unwrap_or_default();
    let single = steps.len() == 1;
    let mut path: Vec<String> = steps.into_iter().map(|step| step.key).collect();
    let itself = match name {
        "metadata" => return Ok((Field::Metadata(path.split_off(1)), Content::Json)),
        "payload" => return Ok((Field::Payload(path.split_off(1)), Content::Json)),
        "id" => (Field::Id, Content::Id),
        "type" => (Field::Type, Content::Text),
        "key" => (Field::Key, Content::Text),
        "partition" => (Field::Partition, Content::Number),
        "sequence" => (Field::Sequence, Content::Number),
        "timestamp" => (Field::Timestamp, Content::Instant),
        name if LINEAGE.contains(&name) => (Field::metadata([name]), Content::Text),
        _ => return Ok((Field::Payload(path), Content::Json)),
    };
    if single {
        return Ok(itself);
    }
    Err(format!("{name} has no parts, and the payload's field is written payload.{name}"))
}

/// Reads what follows the field.
fn condition(content: Content, text: &str) -> Result<Condition, String> {
    if text == "?" {
        return Ok(Condition::Exists);
    }
    if text.starts_with('!') {
        return Err("no condition says that something is not so".into());
    }
    let values = |text| -> Result<Vec<Value>, String> {
        words(text)?.into_iter().map(|word| content.value(word)).collect()
    };
    if let Some(text) = text.strip_prefix('=') {
        if text.starts_with('=') {
            return Err("the sign is =, once".into());
        }
        let mut values = values(text)?;
        return Ok(match values.len() {
            1 => Condition::Equals(values.remove(0)),
            _ => Condition::In(values),
        });
    }
    for (sign, condition) in ORDERS {
        let Some(text) = text.strip_prefix(sign) else { continue };
        return match <[Value; 1]>::try_from(values(text)?) {
            Ok([value]) if value.is_number() || value.is_string() => Ok(condition(value)),
            Ok([value]) => {
                Err(format!("{value} has no order: after {sign} comes a number or text"))
            }
            Err(_) => Err(format!("after {sign} comes one value; quotes keep a comma")),
        };
    }
    Err("after the field comes =, <, <=, >, >= or ?".into())
}

/// A value as it is written.
enum Word<'a> {
    Plain(&'a str),
    /// Quoted text, an array or an object.
    Json(Value),
}

/// The values between commas.
fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        let (word, after) = word(rest.trim_start())?;
        words.push(word);
        let after = after.trim_start();
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None if after.is_empty() => return Ok(words),
            None => return Err(format!("{after} follows a value that had ended")),
        }
    }
}

fn word(text: &str) -> Result<(Word<'_>, &str), String> {
    if text.starts_with(['"', '[', '{']) {
        let (value, after) = json(text)?;
        return Ok((Word::Json(value), after));
    }
    let (word, after) = text.split_at(text.find(',').unwrap_or(text.len()));
    match word.trim_end() {
        "" => Err("a value is missing (empty text is written \"\")".into()),
        word => Ok((Word::Plain(word), after)),
    }
}

/// The JSON at the start of a text, and what follows it.
fn json(text: &str) -> Result<(Value, &str), String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok((value, &text[values.byte_offset()..])),
        _ => Err(format!("{text} begins like JSON but is none")),
    }
}

impl Content {
    fn value(self, word: Word<'_>) -> Result<Value, String> {
        let text = match (self, &word) {
            (Self::Json, Word::Json(value)) => return Ok(value.clone()),
            (Self::Json, Word::Plain(text)) => {
                return Ok(serde_json::from_str(text).unwrap_or_else(|_| (*text).into()));
            }
            (_, Word::Plain(text)) => text,
            (_, Word::Json(Value::String(text))) => text.as_str(),
            (_, Word::Json(value)) => return Err(format!("this field never holds {value}")),
        };
        match self {
            Self::Json | Self::Text => Ok(text.into()),
            Self::Number => text
                .parse()
                .map(|number: u64| number.into())
                .map_err(|_| format!("{text} is no number, which partitions and sequences are")),
            Self::Instant => Ok(instant(text)?.to_string().into()),
            Self::Id => {
                let id = Uuid::parse_str(text).map_err(|_| format!("{text} is no UUID"))?;
                Ok(id.to_string().into())
            }
        }
    }
}

/// Reads an instant: RFC 3339, a date (its beginning in UTC), or a time ago.
///
/// # Errors
/// How instants are written.
pub(crate) fn instant(text: &str) -> Result<Timestamp, String> {
    if let Ok(ago) = duration(text) {
        return Ok(Timestamp::now() - ago);
    }
    let written = text.parse().or_else(|_| format!("{text}T00:00:00Z").parse());
    written.map_err(|_| {
        format!(
            "{text} is no instant: write 2026-11-30T12:00:00Z, 2026-11-30 (in UTC), \
             or a time ago such as 15m, 2h or 1d"
        )
    })
}

/// Reads a duration such as `500ms`, `10s`, `5m`, `2h` or `1d`.
///
/// # Errors
/// How durations are written.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let milliseconds = match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    let duration = milliseconds.zip(number).and_then(|(unit, number)| number.checked_mul(unit));
    duration.map(Duration::from_millis).ok_or_else(|| {
        format!("{text} is no duration: write a number and a unit, as in 500ms, 10s, 5m, 2h or 1d")
    })
}

#[cfg(test)]
mod tests {
    use rheo::Condition::{Equals, Exists, Greater, GreaterOrEqual, In, Less, LessOrEqual};
    use serde_json::json;

    use super::*;

    const ID: &str = "018f4d3a-9a7b-7c3e-8a51-0123456789ab";

    #[test]
    fn fields_and_signs() {
        let payload = |path: &[&str]| Field::payload(path.iter().copied());
        let table = [
            ("type=price", Field::Type, Equals(json!("price"))),
            ("key=42", Field::Key, Equals(json!("42"))),
            ("key=a,\"b,c\"", Field::Key, In(vec![json!("a"), json!("b,c")])),
            ("key?", Field::Key, Exists),
            ("partition=3", Field::Partition, Equals(json!(3))),
            ("sequence>17", Field::Sequence, Greater(json!(17))),
            ("producer=shop", Field::metadata(["producer"]), Equals(json!("shop"))),
            ("schema_version=2", Field::metadata(["schema_version"]), Equals(json!("2"))),
            ("metadata.a.b<=2", Field::metadata(["a", "b"]), LessOrEqual(json!(2))),
            ("payload.schema=2", payload(&["schema"]), Equals(json!(2))),
            ("price>2.5", payload(&["price"]), Greater(json!(2.5))),
            ("order.total < -1e3", payload(&["order", "total"]), Less(json!(-1000.0))),
            ("payload>=5", payload(&[]), GreaterOrEqual(json!(5))),
            ("payload.\"a.b\".c=x=y", payload(&["a.b", "c"]), Equals(json!("x=y"))),
            ("\"type\"=x", payload(&["type"]), Equals(json!("x"))),
            ("größe=übergroß", payload(&["größe"]), Equals(json!("übergroß"))),
        ];
        for (text, field, condition) in table {
            assert_eq!(filter(text), Ok(Filter::new(field, condition)), "{text}");
        }
        let id = Filter::new(Field::Id, Equals(json!(ID)));
        assert_eq!(filter(&format!("id={}", ID.to_uppercase())), Ok(id));
        let noon = Filter::new(Field::Timestamp, GreaterOrEqual(json!("2026-03-15T12:00:00Z")));
        assert_eq!(filter("timestamp>=2026-03-15T13:00:00+01:00"), Ok(noon));
    }

    #[test]
    fn values_of_the_payload() {
        let table = [
            ("x=5", Equals(json!(5))),
            ("x=\"5\"", Equals(json!("5"))),
            ("x=05", Equals(json!("05"))),
            ("x=true", Equals(json!(true))),
            ("x=null", Equals(json!(null))),
            ("x=True", Equals(json!("True"))),
            ("x= two words ", Equals(json!("two words"))),
            ("x=\"\"", Equals(json!(""))),
            ("x=EUR, USD ,1", In(vec![json!("EUR"), json!("USD"), json!(1)])),
            ("x=\"Paris, TX\"", Equals(json!("Paris, TX"))),
            ("x=[1,2]", Equals(json!([1, 2]))),
            ("x={\"a\":1},2", In(vec![json!({"a": 1}), json!(2)])),
            ("x=5\"", Equals(json!("5\""))),
        ];
        for (text, condition) in table {
            assert_eq!(filter(text), Ok(Filter::new(Field::payload(["x"]), condition)), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let table = [
            ("", "the name of a field is missing"),
            ("=5", "the name of a field is missing"),
            ("payload.=5", "the name of a field is missing"),
            ("price", "after the field comes"),
            ("price?x", "after the field comes"),
            ("price!=2", "no condition says that something is not so"),
            ("price==2", "the sign is =, once"),
            ("price=", "a value is missing"),
            ("price=1,", "a value is missing"),
            ("price>1,2", "after > comes one value"),
            ("price>=true", "true has no order"),
            ("price=\"1", "begins like JSON but is none"),
            ("payload.\"a=1", "begins like JSON but is none"),
            ("price=\"1\"2", "2 follows a value that had ended"),
            ("price={1}", "begins like JSON but is none"),
            ("type.a=1", "type has no parts"),
            ("type=[1]", "this field never holds [1]"),
            ("partition=x", "x is no number"),
            ("sequence>-1", "-1 is no number"),
            ("id=7", "7 is no UUID"),
            ("timestamp>noon", "noon is no instant"),
        ];
        for (text, why) in table {
            let told = filter(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
            assert!(told.contains("type=price"), "{text}: {told}");
        }
    }

    #[test]
    fn instants() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(instant("2026-11-30"), Ok(at("2026-11-30T00:00:00Z")));
        assert_eq!(instant("2026-11-30T12:00:00+02:00"), Ok(at("2026-11-30T10:00:00Z")));
        let before = Timestamp::now();
        let ago = instant("2h").unwrap() + Duration::from_secs(7200);
        assert!(before <= ago && ago <= Timestamp::now());
        for text in ["", "noon", "2026-11-30T12:00:00", "2026-13-01", "5", "-5m"] {
            assert!(instant(text).unwrap_err().contains("is no instant"), "{text}");
        }
    }

    #[test]
    fn durations() {
        let table = [("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("0s", 0)];
        for (text, milliseconds) in table {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(duration("1d"), Ok(Duration::from_secs(86_400)));
        for text in ["", "5", "s", "1.5s", "-1s", "5 s", "5µs", "1w", "99999999999999999999d"] {
            assert!(duration(text).unwrap_err().contains("is no duration"), "{text}");
        }
        assert!(duration("18446744073709551615d").is_err());
    }
}
