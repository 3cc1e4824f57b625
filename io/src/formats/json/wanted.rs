//! Takes the requested fields of a JSON object while the object is read. Other fields are skipped: even a large field is not built
//! as a value.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use simstore::error::excerpt;

use super::names::Key;
use super::written::Written;
use crate::formats::fields::below;

/// The kinds of values that are taken of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
        let leads = |key: &str| wanted.iter().any(|it| it.name == key || below(it.name, key).is_some());
        while let Some(key) = map.next_key_seed(Key(|key: &str| leads(key).then(|| key.to_owned())))? {
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
                    own.push(at);
                } else if let Some(name) = below(name, &key) {
                    inner.push(Wanted { name, takes });
                    inner_at.push(at);
                }
            }
            let takes = own.iter().map(|&at| wanted[at].takes).max().unwrap_or(Takes::Scalar);
            let (value, fields) = map.next_value_seed(ValueWith { takes, inner: &inner })?;
            let values = vec![Some(value); own.len()];
            for (at, value) in own.into_iter().zip(values) {
                (is_own[at], found[at]) = (true, value);
            }
            for (at, field) in inner_at.into_iter().zip(fields) {
                if field.is_some() && !is_own[at] {
                    found[at] = field;
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
    let position_of = |key: &str| wanted.iter().position(|wanted| wanted.name == key);
    while let Some(at) = map.next_key_seed(Key(position_of))? {
        let Some(at) = at else {
            map.next_value::<IgnoredAny>()?;
            continue;
        };
        let Wanted { name, takes } = wanted[at];
        if found[at].is_some() {
            return Err(A::Error::custom(format_args!("two fields are named `{}`", excerpt(name))));
        }
        found[at] = Some(map.next_value_seed(ValueWith { takes, inner: &[] })?.0);
    }
    Ok(found)
}

/// A value, and its fields that are asked for.
type Values<'l> = (Found<'l>, Vec<Option<Found<'l>>>);

/// A value, and fields of it if it is an object.
struct ValueWith<'w> {
    /// The kinds of values that are taken of the value itself.
    takes: Takes,
    /// Fields that are asked for.
    inner: &'w [Wanted<'w>],
}

impl ValueWith<'_> {
    /// A value that is no object. The fields of `null` are `null`.
    fn only<'l>(&self, value: Found<'l>) -> Values<'l> {
        let field = (value == Found::Null).then_some(Found::Null);
        (value, vec![field; self.inner.len()])
    }
}

impl<'de> DeserializeSeed<'de> for ValueWith<'_> {
    type Value = Values<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.takes == Takes::Scalar {
            return deserializer.deserialize_any(self);
        }
        let mut json = String::new();
        Written(&mut json).deserialize(deserializer)?;
        let scalar = ValueWith { takes: Takes::Scalar, ..self };
        let mut again = serde_json::Deserializer::from_str(&json);
        let (value, fields) = again.deserialize_any(scalar).map_err(D::Error::custom)?;
        let fields = fields.into_iter().map(|field| field.map(Found::into_owned)).collect();
        let value = value.into_owned();
        Ok((if value == Found::Other(None) { Found::Other(Some(json)) } else { value }, fields))
    }
}

impl<'de> Visitor<'de> for ValueWith<'_> {
    type Value = Values<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.only(Found::Null))
    }

    visits!(visit_bool(bool), visit_i64(i64), visit_f64(f64); self, _ => Ok(self.only(Found::Other(None))));

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.only(Found::Number(number)))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(self.only(Found::Text(text.into())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.only(Found::Text(text.to_owned().into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.only(Found::Other(None)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        if self.inner.is_empty() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(self.only(Found::Other(None)));
        }
        Ok((Found::Other(None), ObjectWith(self.inner).visit_map(map)?))
    }
}
