//! A served store of similar documents.

use std::borrow::Cow;
use std::collections::HashSet;

use simstore::Snapshot;
use simstore_io::DocumentId;
use simstore_text::{DocumentComparer, Signature, SimilarDocument};

use super::query_trace::trace_queries;
use super::served_store::{AdditionOptions, ServedStore};
use super::similar_writer::{SimilarWriter, TextOutcome};
use super::store_access::StoreAccess;
use super::store_upkeep::StoreUpkeep;
use crate::messages::{
    AnswerId, ComparedSide, ComparisonAnswer, DocumentAnswer, DocumentMessage, DocumentOutcome, JsonId,
    MatchList, MatchMessage, QueryMessage, SimilarMatch, StoreStats, StoredDocumentMessage, TraceAnswer,
};
use crate::service_error::{ServiceError, ServiceResult};
use crate::text_comparison::compare_texts;

/// A store of similar documents, with or without texts.
pub(super) struct SimilarStore {
    access: StoreAccess<SimilarWriter, u64>,
    comparer: DocumentComparer,
}

impl SimilarStore {
    pub(super) fn new(access: StoreAccess<SimilarWriter, u64>, comparer: DocumentComparer) -> SimilarStore {
        SimilarStore { access, comparer }
    }

    /// Returns the numeric id of a document; `None` if it is not stored. Reads all names of the store if it is open only for reading.
    fn number(&self, snapshot: &Snapshot<u64>, id: &JsonId) -> ServiceResult<Option<u64>> {
        let text = id.to_string();
        if let StoreAccess::Writing(writer) = &self.access {
            return writer.number(&text);
        }
        if let Some(pair) = snapshot.pairs_of_names(&HashSet::from([text.clone()]))?.first() {
            return Ok(Some(pair.id));
        }
        let Ok(DocumentId::Number(number)) = DocumentId::from_text(&text) else { return Ok(None) };
        let is_stored = self.comparer.settings().signature(snapshot, number)?.is_some();
        Ok((is_stored && snapshot.name(number)?.is_none()).then_some(number))
    }

    /// Returns the text of one of two compared documents.
    fn side_text<'a>(&self, snapshot: &Snapshot<u64>, side: &'a ComparedSide) -> ServiceResult<Cow<'a, str>> {
        let Some(id) = &side.id else {
            return side.text.as_deref().map(Cow::Borrowed).ok_or_else(refuse_fingerprint);
        };
        let missing = || ServiceError::no_document(id);
        let number = self.number(snapshot, id)?.ok_or_else(missing)?;
        if !self.comparer.settings().has_texts() {
            let message = "this store keeps no texts, so a stored document cannot be compared word by word";
            return Err(ServiceError::unusable("no-texts", message));
        }
        Ok(Cow::Owned(self.comparer.text(snapshot, number)?.ok_or_else(missing)?))
    }

    fn min_similarity(&self, query: &QueryMessage) -> ServiceResult<f64> {
        let least = self.comparer.settings().min_similarity();
        match query.similarity {
            Some(similarity) if !(0.0..=1.0).contains(&similarity) => Err(ServiceError::unusable(
                "similarity",
                format!("similarity {similarity} is not from {least} to 1"),
            )),
            Some(similarity) if similarity < least => Err(ServiceError::unusable(
                "similarity",
                format!("similarity {similarity} is less than the {least} that this store was made for"),
            )),
            similarity => Ok(similarity.unwrap_or(least)),
        }
    }
}

fn refuse_fingerprint() -> ServiceError {
    let message = "this store compares texts: send a `text` instead of a `fingerprint`";
    ServiceError::unusable("wrong-kind", message)
}

/// Refuses queries that only stores of fingerprints answer.
fn check_kind(query: &QueryMessage) -> ServiceResult<()> {
    if query.distance.is_some() {
        let message = "this store compares texts: give a `similarity` instead of a `distance`";
        return Err(ServiceError::unusable("wrong-kind", message));
    }
    if query.fingerprint.is_some() { Err(refuse_fingerprint()) } else { Ok(()) }
}

/// Returns the list of matches for an answer, the most similar first, then by id.
fn match_list(similar: Vec<SimilarDocument>, limit: usize) -> MatchList {
    let total = similar.len();
    let message = |found: SimilarDocument| {
        MatchMessage::Similar(SimilarMatch {
            id: AnswerId(found.name.map_or(DocumentId::Number(found.id), DocumentId::Name)),
            similarity: found.estimate.similarity,
            standard_error: found.estimate.standard_error,
        })
    };
    let matches: Vec<MatchMessage> = similar.into_iter().take(limit).map(message).collect();
    MatchList { truncated: total > matches.len(), matches, total }
}

impl ServedStore for SimilarStore {
    fn add(&self, document: &DocumentMessage, options: AdditionOptions) -> ServiceResult<DocumentAnswer> {
        let writer = self.access.writer()?;
        let text = document.text.as_deref().ok_or_else(refuse_fingerprint)?;
        let Some(added) = writer.add(text, document.id.as_ref(), options.if_new)? else {
            let id = document.id.as_ref().map(JsonId::to_answer);
            return Ok(DocumentAnswer { id, result: DocumentOutcome::Empty, found: MatchList::default() });
        };
        let (result, found) = match added.outcome {
            TextOutcome::Stored => (DocumentOutcome::Stored, MatchList::default()),
            TextOutcome::Present => (DocumentOutcome::Present, MatchList::default()),
            TextOutcome::DuplicateOf(similar) => {
                (DocumentOutcome::Duplicate, match_list(similar, options.limit))
            }
        };
        Ok(DocumentAnswer { id: Some(AnswerId(added.id)), result, found })
    }

    fn query(&self, query: &QueryMessage, limit: usize) -> ServiceResult<MatchList> {
        check_kind(query)?;
        let min_similarity = self.min_similarity(query)?;
        let (snapshot, settings) = (self.access.snapshot(), self.comparer.settings());
        let Some(id) = &query.id else {
            let features = self.comparer.profile().feature_set(query.text.as_deref().unwrap_or_default());
            let signature = Signature::new(&features).ok_or_else(ServiceError::empty_text)?;
            let candidates = settings.candidates(&snapshot, &signature)?;
            let found = self.comparer.find_similar(
                &snapshot,
                &signature,
                || Ok(features),
                &candidates,
                min_similarity,
            )?;
            return Ok(match_list(found, limit));
        };
        let missing = || ServiceError::no_document(id);
        let number = self.number(&snapshot, id)?.ok_or_else(missing)?;
        let documents = self.comparer.documents(&snapshot, &[number])?;
        let document = documents.first().ok_or_else(missing)?;
        let mut candidates = settings.candidates(&snapshot, &document.signature)?;
        candidates.retain(|&candidate| candidate != number);
        let features = || self.comparer.features(&snapshot, document);
        let found = self
            .comparer
            .find_similar(&snapshot, &document.signature, features, &candidates, min_similarity)?;
        Ok(match_list(found, limit))
    }

    fn is_short(&self, _: &QueryMessage) -> bool {
        false
    }

    fn compare(&self, a: &ComparedSide, b: &ComparedSide) -> ServiceResult<ComparisonAnswer> {
        let snapshot = self.access.snapshot();
        let (a, b) = (self.side_text(&snapshot, a)?, self.side_text(&snapshot, b)?);
        Ok(ComparisonAnswer::Texts(compare_texts(self.comparer.profile(), &a, &b)))
    }

    fn trace(&self, query: &QueryMessage) -> ServiceResult<TraceAnswer> {
        check_kind(query)?;
        let (snapshot, settings) = (self.access.snapshot(), self.comparer.settings());
        let signature = match &query.id {
            None => {
                let features = self.comparer.profile().feature_set(query.text.as_deref().unwrap_or_default());
                Signature::new(&features).ok_or_else(ServiceError::empty_text)?
            }
            Some(id) => {
                let number = self.number(&snapshot, id)?;
                let signature = number.map(|number| settings.signature(&snapshot, number)).transpose()?;
                signature.flatten().ok_or_else(|| ServiceError::no_document(id))?
            }
        };
        let bands = signature.bands.get(..settings.bands()).unwrap_or(&signature.bands);
        Ok(trace_queries(&snapshot, bands, settings.band_distance())?)
    }

    fn document(&self, id: &JsonId) -> ServiceResult<Option<StoredDocumentMessage>> {
        let snapshot = self.access.snapshot();
        let Some(number) = self.number(&snapshot, id)? else { return Ok(None) };
        let name = snapshot.name(number)?;
        let text = self.comparer.text(&snapshot, number)?;
        let id = AnswerId(name.map_or(DocumentId::Number(number), DocumentId::Name));
        Ok(Some(StoredDocumentMessage { id, fingerprints: None, text }))
    }

    fn delete(&self, id: &JsonId) -> ServiceResult<Option<AnswerId>> {
        Ok(self.access.writer()?.delete(&id.to_string())?.map(AnswerId))
    }

    fn upkeep(&self) -> &dyn StoreUpkeep {
        &self.access
    }

    fn stats(&self) -> StoreStats {
        let (stats, settings) = (self.access.stats(), self.comparer.settings());
        StoreStats {
            kind: "similar-documents".to_owned(),
            documents: stats.documents / settings.bands() as u64,
            distance: None,
            similarity: Some(settings.min_similarity()),
            recall: Some(settings.recall()),
            keeps_texts: settings.has_texts(),
            ..stats
        }
    }
}
