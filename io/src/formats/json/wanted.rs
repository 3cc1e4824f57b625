//! Takes the requested fields of a JSON object while the object is read. Other fields are skipped: even a large field is not built
//! as a value.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use simstore::error::excerpt;

use super::written::Written;
use crate::formats::fields::below;

/// The kinds of values that are taken of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A string or a whole number.
    Scalar,
    /// Any value; other values than strings as JSON.
    Value,
}

/// A field that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'n> {
    /// Its name; `a.b` is the field `b` of the object `a`, unless there is a field `a.b`.
    pub(super) name: &'n str,
    pub(super) takes: Takes,
}

/// The value of a field; a string without escapes is a part of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found<'l> {
    Null,
    Text(Cow<'l, str>),
    Number(u64),
    /// Any other value, with its JSON if requested.
    Other(Option<String>),
}

impl Found<'_> {
    fn into_owned<'l>(self) -> Found<'l> {
        match self {
            Found::Null => Found::Null,
            Found::Text(text) => Found::Text(text.into_owned().into()),
            Found::Number(number) => Found::Number(number),
            Found::Other(json) => Found::Other(json),
        }
    }
}

/// An object: the value of each field that is asked for.
pub(super) struct ObjectWith<'w>(pub(super) &'w [Wanted<'w>]);

impl<'de> DeserializeSeed<'de> for ObjectWith<'_> {
    type Value = Vec<Option<Found<'de>>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectWith<'_> {
    type Value = Vec<Option<Found<'de>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object on one line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let ObjectWith(wanted) = self;
        if are_plain(wanted) {
            return visit_plain(wanted, map);
        }
        // A field of this very name comes before one in an object.
        let mut found: Vec<Option<Found<'de>>> = vec![None; wanted.len()];
        let mut is_own = vec![false; wanted.len()];
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = map.next_key_seed(KeyOf(wanted))? {
            let Some(key) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("two fields are named `{}`", excerpt(&key))));
            }
            let (mut own, mut inner, mut inner_at) = (Vec::new(), Vec::new(), Vec::new());
            for (at, &Wanted { name, takes }) in wanted.iter().enumerate() {
                if name == key {
                    own.push((at, takes));
                } else if let Some(name) = below(name, &key) {
                    inner.push(Wanted { name, takes });
                    inner_at.push(at);
                }
            }
            let value = ValueWith { own: own.iter().map(|&(_, takes)| takes).collect(), inner: &inner };
            let (of_own, of_inner) = map.next_value_seed(value)?;
            for ((at, _), value) in own.into_iter().zip(of_own) {
                (is_own[at], found[at]) = (true, Some(value));
            }
            for (at, value) in inner_at.into_iter().zip(of_inner) {
                if value.is_some() && !is_own[at] {
                    found[at] = value;
                }
            }
            seen.push(key);
        }
        Ok(found)
    }
}

/// Whether all names are different, and none may lead into an object.
fn are_plain(wanted: &[Wanted<'_>]) -> bool {
    let is_plain = |(at, field): (usize, &Wanted<'_>)| {
        !field.name.contains('.') && wanted[..at].iter().all(|other| other.name != field.name)
    };
    wanted.len() <= PLAIN_MAX && wanted.iter().enumerate().all(is_plain)
}

/// The most fields that are compared with one another by name.
const PLAIN_MAX: usize = 8;

/// Visits an object whose [plain](are_plain) fields are asked for: the usual case, with few allocations.
fn visit_plain<'de, A: MapAccess<'de>>(
    wanted: &[Wanted<'_>],
    mut map: A,
) -> Result<Vec<Option<Found<'de>>>, A::Error> {
    let mut found: Vec<Option<Found<'de>>> = vec![None; wanted.len()];
    while let Some(at) = map.next_key_seed(PositionOf(wanted))? {
        let Some(at) = at else {
            map.next_value::<IgnoredAny>()?;
            continue;
        };
        let Wanted { name, takes } = wanted[at];
        if found[at].is_some() {
            return Err(A::Error::custom(format_args!("two fields are named `{}`", excerpt(name))));
        }
        found[at] = match takes {
            Takes::Scalar => Some(map.next_value_seed(Scalar)?),
            Takes::Value => {
                let (value, _) = map.next_value_seed(ValueWith { own: vec![takes], inner: &[] })?;
                value.into_iter().next()
            }
        };
    }
    Ok(found)
}

/// The position of a key among fields that are asked for.
struct PositionOf<'w>(&'w [Wanted<'w>]);

impl<'de> DeserializeSeed<'de> for PositionOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for PositionOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|wanted| wanted.name == key))
    }
}

/// Takes a value if it is a string or a whole number.
struct Scalar;

impl<'de> DeserializeSeed<'de> for Scalar {
    type Value = Found<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scalar {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Found<'de>, E> {
        Ok(Found::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found<'de>, E> {
        Ok(Found::Other(None))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Found<'de>, E> {
        Ok(Found::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found<'de>, E> {
        Ok(Found::Other(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found<'de>, E> {
        Ok(Found::Other(None))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Found<'de>, E> {
        Ok(Found::Text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Found<'de>, E> {
        Ok(Found::Text(text.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Found<'de>, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::Other(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Found::Other(None))
    }
}

/// A key, if it leads to a field that is asked for.
struct KeyOf<'w>(&'w [Wanted<'w>]);

impl<'de> DeserializeSeed<'de> for KeyOf<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyOf<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let leads = |wanted: &Wanted<'_>| wanted.name == key || below(wanted.name, key).is_some();
        Ok(self.0.iter().any(leads).then(|| key.to_owned()))
    }
}

/// A value, once for each time that it is asked for, and its fields that are asked for.
type Values<'l> = (Vec<Found<'l>>, Vec<Option<Found<'l>>>);

/// A value: itself, once for each time that it is asked for, and fields of it if it is an object.
struct ValueWith<'w> {
    own: Vec<Takes>,
    inner: &'w [Wanted<'w>],
}

impl ValueWith<'_> {
    fn takes(&self, what: Takes) -> bool {
        self.own.contains(&what)
    }

    /// The same value for all.
    fn all<'l>(&self, own: Found<'l>, inner: Option<Found<'l>>) -> Values<'l> {
        (vec![own; self.own.len()], vec![inner; self.inner.len()])
    }
}

impl<'de> DeserializeSeed<'de> for ValueWith<'_> {
    type Value = Values<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if !self.takes(Takes::Value) {
            return deserializer.deserialize_any(self);
        }
        let mut json = String::new();
        Written(&mut json).deserialize(deserializer)?;
        let own = self.own.clone();
        let scalar = ValueWith { own: vec![Takes::Scalar; own.len()], inner: self.inner };
        let mut again = serde_json::Deserializer::from_str(&json);
        let (of_own, of_inner) = again.deserialize_any(scalar).map_err(D::Error::custom)?;
        let of_own = of_own.into_iter().zip(own).map(|(found, takes)| match (found, takes) {
            (Found::Other(_), Takes::Value) => Found::Other(Some(json.clone())),
            (found, _) => found.into_owned(),
        });
        let of_inner = of_inner.into_iter().map(|found| found.map(Found::into_owned));
        Ok((of_own.collect(), of_inner.collect()))
    }
}

impl<'de> Visitor<'de> for ValueWith<'_> {
    type Value = Values<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.all(Found::Null, Some(Found::Null)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(self.all(Found::Other(None), None))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.all(Found::Number(number), None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(self.all(Found::Other(None), None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(self.all(Found::Other(None), None))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        let is_kept = self.takes(Takes::Scalar);
        Ok(self.all(if is_kept { Found::Text(text.into()) } else { Found::Other(None) }, None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        let is_kept = self.takes(Takes::Scalar);
        Ok(self.all(if is_kept { Found::Text(text.to_owned().into()) } else { Found::Other(None) }, None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.all(Found::Other(None), None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (own, _) = self.all(Found::Other(None), None);
        if self.inner.is_empty() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok((own, Vec::new()));
        }
        Ok((own, ObjectWith(self.inner).visit_map(map)?))
    }
}
