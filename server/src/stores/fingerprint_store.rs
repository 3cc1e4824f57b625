//! A served store of fingerprints.

use std::collections::HashSet;

use simstore::{Error, Fingerprint, Match, Result, Snapshot};
use simstore_io::DocumentId;
use simstore_text::Profile;

use super::fingerprint_writer::{AdditionOutcome, FingerprintWriter};
use super::query_trace::trace_queries;
use super::served_store::{AdditionOptions, ServedStore};
use super::store_access::StoreAccess;
use super::store_upkeep::StoreUpkeep;
use crate::messages::{
    AnswerId, BitComparison, ComparedSide, ComparisonAnswer, DocumentAnswer, DocumentMessage,
    DocumentOutcome, FingerprintMatch, HexDigits, JsonId, MatchList, MatchMessage, QueryMessage, StoreStats,
    StoredDocumentMessage, TraceAnswer,
};
use crate::service_error::{ServiceError, ServiceResult};

/// A store of fingerprints of 64 or 128 bits.
pub(super) struct FingerprintStore<F: Fingerprint> {
    access: StoreAccess<FingerprintWriter<F>, F>,
    /// Profile that makes fingerprints of texts; `None` if the store takes fingerprints alone.
    profile: Option<Profile>,
}

impl<F: Fingerprint> FingerprintStore<F> {
    pub(super) fn new(access: StoreAccess<FingerprintWriter<F>, F>, profile: Option<Profile>) -> Self {
        FingerprintStore { access, profile }
    }

    /// Returns the fingerprint of a text, or the fingerprint that is given as digits. `None` if the text has no features.
    fn fingerprint(&self, text: Option<&str>, digits: Option<&HexDigits>) -> ServiceResult<Option<F>> {
        match (text, digits) {
            (_, Some(HexDigits(digits))) => Ok(Some(F::parse_hex(digits)?)),
            (Some(text), None) => match &self.profile {
                Some(profile) => Ok(profile.fingerprint::<F>(text).map(|simhash| simhash.fingerprint)),
                None => Err(ServiceError::unusable(
                    "no-profile",
                    "this store has no text profile: send a `fingerprint` instead of a `text`",
                )),
            },
            (None, None) => {
                Err(Error::BadArgument("neither `text` nor `fingerprint` is given".to_owned()).into())
            }
        }
    }

    /// Returns the pairs of fingerprint and numeric id of a document. Reads all ids of the store if it is open only for reading.
    fn pairs(&self, id: &JsonId) -> ServiceResult<Vec<(F, u64)>> {
        let text = id.to_string();
        if let StoreAccess::Writing(writer) = &self.access {
            return writer.pairs(&text);
        }
        let snapshot = self.access.snapshot();
        let mut pairs = snapshot.pairs_of_names(&HashSet::from([text.clone()]))?;
        if let Ok(DocumentId::Number(number)) = DocumentId::from_text(&text) {
            let numbered = snapshot.pairs_of_ids(&HashSet::from([number]))?;
            pairs.extend(numbered.into_iter().filter(|pair| pair.name.is_none()));
        }
        Ok(pairs.into_iter().map(|pair| (pair.fingerprint, pair.id)).collect())
    }

    /// Returns the fingerprints of a text, of digits, or of a stored document. There is at least one.
    fn fingerprints(
        &self,
        text: Option<&str>,
        digits: Option<&HexDigits>,
        id: Option<&JsonId>,
    ) -> ServiceResult<Vec<F>> {
        let Some(id) = id else {
            let fingerprint = self.fingerprint(text, digits)?;
            return Ok(vec![fingerprint.ok_or_else(ServiceError::empty_text)?]);
        };
        self.check_keeps_ids()?;
        let pairs = self.pairs(id)?;
        if pairs.is_empty() {
            return Err(ServiceError::no_document(id));
        }
        Ok(pairs.into_iter().map(|(fingerprint, _)| fingerprint).collect())
    }

    fn check_keeps_ids(&self) -> ServiceResult<()> {
        if self.access.snapshot().keeps_ids() {
            return Ok(());
        }
        Err(ServiceError::unusable("no-ids", "this store keeps no ids, so documents cannot be found by id"))
    }
}

/// Returns the distance of a query.
fn distance<F: Fingerprint>(snapshot: &Snapshot<F>, query: &QueryMessage) -> ServiceResult<u32> {
    if query.similarity.is_some() {
        let message = "this store compares fingerprints: give a `distance` instead of a `similarity`";
        return Err(ServiceError::unusable("wrong-kind", message));
    }
    let distance = query.distance.unwrap_or(snapshot.distance());
    if distance > snapshot.distance() {
        return Err(ServiceError::unusable(
            "distance",
            format!("distance {distance} is more than the {} that this store answers", snapshot.distance()),
        ));
    }
    Ok(distance)
}

/// Returns the list of matches for an answer, the nearest first, then by id.
fn match_list<F: Fingerprint>(
    snapshot: &Snapshot<F>,
    mut matches: Vec<Match<F>>,
    limit: usize,
) -> Result<MatchList> {
    matches.sort_unstable_by_key(|found| (found.distance, found.id, found.fingerprint));
    let total = matches.len();
    let has_names = snapshot.stats().names > 0;
    let message = |found: Match<F>| {
        let name = match found.id {
            Some(id) if has_names => snapshot.name(id)?,
            _ => None,
        };
        let number = found.id.map(DocumentId::Number);
        Ok(MatchMessage::Fingerprint(FingerprintMatch {
            id: name.map(DocumentId::Name).or(number).map(AnswerId),
            fingerprint: found.fingerprint.to_hex(),
            distance: found.distance,
        }))
    };
    let matches = matches.into_iter().take(limit).map(message).collect::<Result<Vec<_>>>()?;
    Ok(MatchList { truncated: total > matches.len(), matches, total })
}

impl<F: Fingerprint> ServedStore for FingerprintStore<F> {
    fn add(&self, document: &DocumentMessage, options: AdditionOptions) -> ServiceResult<DocumentAnswer> {
        let writer = self.access.writer()?;
        let fingerprint = self.fingerprint(document.text.as_deref(), document.fingerprint.as_ref())?;
        let Some(fingerprint) = fingerprint else {
            let id = document.id.as_ref().map(JsonId::to_answer);
            return Ok(DocumentAnswer { id, result: DocumentOutcome::Empty, found: MatchList::default() });
        };
        let added = writer.add(fingerprint, document.id.as_ref(), options.if_new)?;
        let id = added.id.map(AnswerId);
        let (result, found) = match added.outcome {
            AdditionOutcome::Stored => (DocumentOutcome::Stored, MatchList::default()),
            AdditionOutcome::Present => (DocumentOutcome::Present, MatchList::default()),
            AdditionOutcome::DuplicateOf(matches) => {
                (DocumentOutcome::Duplicate, match_list(&self.access.snapshot(), matches, options.limit)?)
            }
        };
        Ok(DocumentAnswer { id, result, found })
    }

    fn query(&self, query: &QueryMessage, limit: usize) -> ServiceResult<MatchList> {
        let snapshot = self.access.snapshot();
        let distance = distance(&snapshot, query)?;
        let Some(id) = &query.id else {
            let fingerprint = self.fingerprint(query.text.as_deref(), query.fingerprint.as_ref())?;
            let fingerprint = fingerprint.ok_or_else(ServiceError::empty_text)?;
            return Ok(match_list(&snapshot, snapshot.query(fingerprint, distance)?, limit)?);
        };
        self.check_keeps_ids()?;
        let pairs = self.pairs(id)?;
        let &(_, own_id) = pairs.first().ok_or_else(|| ServiceError::no_document(id))?;
        let mut matches = Vec::new();
        for &(fingerprint, _) in &pairs {
            matches.extend(snapshot.query(fingerprint, distance)?);
        }
        // A document with several fingerprints may find the same match several times: the nearest one stays.
        matches.sort_unstable_by_key(|found| (found.id, found.fingerprint, found.distance));
        matches.dedup_by_key(|found| (found.id, found.fingerprint));
        matches.retain(|found| found.id != Some(own_id));
        Ok(match_list(&snapshot, matches, limit)?)
    }

    fn is_short(&self, query: &QueryMessage) -> bool {
        query.fingerprint.is_some()
    }

    fn compare(&self, a: &ComparedSide, b: &ComparedSide) -> ServiceResult<ComparisonAnswer> {
        let fingerprints = |side: &ComparedSide| {
            self.fingerprints(side.text.as_deref(), side.fingerprint.as_ref(), side.id.as_ref())
        };
        let (a, b) = (fingerprints(a)?, fingerprints(b)?);
        let pairs = a.iter().flat_map(|&a| b.iter().map(move |&b| (a.distance(b), a, b)));
        // Each side has at least one fingerprint.
        let (distance, a, b) = pairs.min().ok_or_else(ServiceError::empty_text)?;
        Ok(ComparisonAnswer::Bits(BitComparison { distance, fingerprints: [a.to_hex(), b.to_hex()] }))
    }

    fn trace(&self, query: &QueryMessage) -> ServiceResult<TraceAnswer> {
        let snapshot = self.access.snapshot();
        let distance = distance(&snapshot, query)?;
        let QueryMessage { text, fingerprint, id, .. } = query;
        let fingerprints = self.fingerprints(text.as_deref(), fingerprint.as_ref(), id.as_ref())?;
        Ok(trace_queries(&snapshot, &fingerprints, distance)?)
    }

    fn document(&self, id: &JsonId) -> ServiceResult<Option<StoredDocumentMessage>> {
        self.check_keeps_ids()?;
        let pairs = self.pairs(id)?;
        let Some(&(_, number)) = pairs.first() else { return Ok(None) };
        let name = self.access.snapshot().name(number)?;
        Ok(Some(StoredDocumentMessage {
            id: AnswerId(name.map_or(DocumentId::Number(number), DocumentId::Name)),
            fingerprints: Some(pairs.iter().map(|(fingerprint, _)| fingerprint.to_hex()).collect()),
            text: None,
        }))
    }

    fn delete(&self, id: &JsonId) -> ServiceResult<Option<AnswerId>> {
        let writer = self.access.writer()?;
        self.check_keeps_ids()?;
        Ok(writer.delete(&id.to_string())?.map(AnswerId))
    }

    fn upkeep(&self) -> &dyn StoreUpkeep {
        &self.access
    }

    fn stats(&self) -> StoreStats {
        self.access.stats()
    }
}
