//! Extracts the requested fields of a JSON object while it is parsed. Other fields are skipped without
//! building their values.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use simstore::error::excerpt;

use super::compact::CompactJson;
use super::field_names::KeyVisitor;
use crate::formats::fields::strip_object_name;

/// The kinds of values that are returned for a requested field. A value of another kind is returned as
/// `FieldValue::Other(None)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueKind {
    /// Strings and unsigned integers.
    Scalar,
    /// All values: strings as they are, others as JSON.
    Any,
}

/// A field whose value an [`ObjectVisitor`] returns.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldRequest<'n> {
    /// Name of the field. `a.b` is the field `b` of the object `a`, unless there is a field named `a.b`.
    pub(super) name: &'n str,
    pub(super) kind: ValueKind,
}

/// Value of a requested field. A string without escapes is borrowed from the line of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldValue<'l> {
    Null,
    Text(Cow<'l, str>),
    Number(u64),
    /// Any other value: as JSON if [`ValueKind::Any`] was requested, otherwise `None`.
    Other(Option<String>),
}

impl FieldValue<'_> {
    fn into_owned<'l>(self) -> FieldValue<'l> {
        match self {
            FieldValue::Null => FieldValue::Null,
            FieldValue::Text(text) => FieldValue::Text(text.into_owned().into()),
            FieldValue::Number(number) => FieldValue::Number(number),
            FieldValue::Other(json) => FieldValue::Other(json),
        }
    }
}

/// A serde visitor of an object that returns the value of each requested field, in the order of the requests; `None`
/// for a missing field.
pub(super) struct ObjectVisitor<'w>(pub(super) &'w [FieldRequest<'w>]);

impl<'de> DeserializeSeed<'de> for ObjectVisitor<'_> {
    type Value = Vec<Option<FieldValue<'de>>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Vec<Option<FieldValue<'de>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object on one line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let ObjectVisitor(wanted) = self;
        if are_flat(wanted) {
            return visit_flat(wanted, map);
        }
        // A field with the full name takes precedence over one in an inner object.
        let mut found: Vec<Option<FieldValue<'de>>> = vec![None; wanted.len()];
        let mut is_own = vec![false; wanted.len()];
        let mut seen: Vec<String> = Vec::new();
        let leads =
            |key: &str| wanted.iter().any(|it| it.name == key || strip_object_name(it.name, key).is_some());
        while let Some(key) = map.next_key_seed(KeyVisitor(|key: &str| leads(key).then(|| key.to_owned())))? {
            let Some(key) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("two fields are named `{}`", excerpt(&key))));
            }
            let (mut own, mut inner, mut inner_at) = (Vec::new(), Vec::new(), Vec::new());
            for (at, &FieldRequest { name, kind }) in wanted.iter().enumerate() {
                if name == key {
                    own.push(at);
                } else if let Some(name) = strip_object_name(name, &key) {
                    inner.push(FieldRequest { name, kind });
                    inner_at.push(at);
                }
            }
            let kind = own.iter().map(|&at| wanted[at].kind).max().unwrap_or(ValueKind::Scalar);
            let (value, fields) = map.next_value_seed(ValueVisitor { kind, inner: &inner })?;
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

/// Whether [`visit_flat`] can read the requested fields: there are at most [`MAX_FLAT_FIELDS`], their names are all
/// different, and no name contains a dot, so that no field is in an inner object.
fn are_flat(wanted: &[FieldRequest<'_>]) -> bool {
    let is_plain = |(at, field): (usize, &FieldRequest<'_>)| {
        !field.name.contains('.') && wanted[..at].iter().all(|other| other.name != field.name)
    };
    wanted.len() <= MAX_FLAT_FIELDS && wanted.iter().enumerate().all(is_plain)
}

/// Maximum number of requested fields for [`visit_flat`], which compares each name in the object with each requested
/// name.
const MAX_FLAT_FIELDS: usize = 8;

/// Returns the values of the requested fields of an object. The requested fields must be [flat](are_flat), the usual
/// case, in which few allocations are needed.
fn visit_flat<'de, A: MapAccess<'de>>(
    wanted: &[FieldRequest<'_>],
    mut map: A,
) -> Result<Vec<Option<FieldValue<'de>>>, A::Error> {
    let mut found: Vec<Option<FieldValue<'de>>> = vec![None; wanted.len()];
    let position_of = |key: &str| wanted.iter().position(|wanted| wanted.name == key);
    while let Some(at) = map.next_key_seed(KeyVisitor(position_of))? {
        let Some(at) = at else {
            map.next_value::<IgnoredAny>()?;
            continue;
        };
        let FieldRequest { name, kind } = wanted[at];
        if found[at].is_some() {
            return Err(A::Error::custom(format_args!("two fields are named `{}`", excerpt(name))));
        }
        found[at] = Some(map.next_value_seed(ValueVisitor { kind, inner: &[] })?.0);
    }
    Ok(found)
}

/// The value of a field, and the values of the requested fields inside this value. The list has one element for each
/// inner field that is requested; `None` means a missing field.
type ValueWithInnerFields<'l> = (FieldValue<'l>, Vec<Option<FieldValue<'l>>>);

/// A serde visitor of the value of a field. If the value is an object, the requested fields in it are returned too.
struct ValueVisitor<'w> {
    kind: ValueKind,
    /// Requested fields inside the value. Their names are relative: if the visited field is `a`, `a.b` is requested as
    /// `b`.
    inner: &'w [FieldRequest<'w>],
}

impl ValueVisitor<'_> {
    /// Returns the result for a value that is not an object. The requested inner fields count as missing; but if the
    /// value is `null`, they count as `null`.
    fn value_without_object<'l>(&self, value: FieldValue<'l>) -> ValueWithInnerFields<'l> {
        let field = (value == FieldValue::Null).then_some(FieldValue::Null);
        (value, vec![field; self.inner.len()])
    }
}

impl<'de> DeserializeSeed<'de> for ValueVisitor<'_> {
    type Value = ValueWithInnerFields<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.kind == ValueKind::Scalar {
            return deserializer.deserialize_any(self);
        }
        let mut json = String::new();
        CompactJson(&mut json).deserialize(deserializer)?;
        let scalar = ValueVisitor { kind: ValueKind::Scalar, ..self };
        let mut again = serde_json::Deserializer::from_str(&json);
        let (value, fields) = again.deserialize_any(scalar).map_err(D::Error::custom)?;
        let fields = fields.into_iter().map(|field| field.map(FieldValue::into_owned)).collect();
        let value = value.into_owned();
        Ok((if value == FieldValue::Other(None) { FieldValue::Other(Some(json)) } else { value }, fields))
    }
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = ValueWithInnerFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.value_without_object(FieldValue::Null))
    }

    visits!(visit_bool(bool), visit_i64(i64), visit_f64(f64); self, _ => Ok(self.value_without_object(FieldValue::Other(None))));

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.value_without_object(FieldValue::Number(number)))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(self.value_without_object(FieldValue::Text(text.into())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.value_without_object(FieldValue::Text(text.to_owned().into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.value_without_object(FieldValue::Other(None)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        if self.inner.is_empty() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(self.value_without_object(FieldValue::Other(None)));
        }
        Ok((FieldValue::Other(None), ObjectVisitor(self.inner).visit_map(map)?))
    }
}
