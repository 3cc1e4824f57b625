//! Opening of the store that a service serves.

use std::sync::Arc;

use simstore::any::Width;
use simstore::{Durability, Error, Fingerprint, Result, Snapshot, Store, StoreOptions, each_width};
use simstore_text::{DocumentComparer, Profile, SimilarDocuments, SimilarSettings};

use super::fingerprint_store::FingerprintStore;
use super::fingerprint_writer::FingerprintWriter;
use super::served_store::ServedStore;
use super::similar_store::SimilarStore;
use super::similar_writer::SimilarWriter;
use super::store_access::StoreAccess;
use crate::config::ServerConfig;

/// Opens the store of a service. Replays the logs of the store, so it may take a while.
///
/// # Errors
/// The errors of [`Store::open`]; [`Error::BadArgument`] if the profile of the store needs files that the configuration does not name.
pub(crate) fn open_store(config: &ServerConfig) -> Result<Arc<dyn ServedStore>> {
    each_width!(Width::from_store(&config.store)?, type F => open::<F>(config))
}

fn open<F: Fingerprint>(config: &ServerConfig) -> Result<Arc<dyn ServedStore>> {
    let snapshot = Snapshot::<F>::open_retrying_on(&config.store_options.fs, &config.store)?;
    let profile = profile(config, snapshot.profile())?;
    if let Some(settings) = SimilarSettings::from_store(&snapshot)? {
        drop(snapshot);
        return open_similar(config, settings, profile);
    }
    drop(snapshot);
    let access = if config.read_only {
        StoreAccess::following(&config.store_options.fs, &config.store)?
    } else {
        let store = Store::<F>::open(&config.store, options(config))?;
        warn_about_torn_tail(store.torn_tail());
        StoreAccess::Writing(FingerprintWriter::new(store))
    };
    if let Some(profile) = &profile {
        profile.check_bits(F::BITS)?;
    }
    Ok(Arc::new(FingerprintStore::new(access, profile)))
}

fn open_similar(
    config: &ServerConfig,
    settings: SimilarSettings,
    profile: Option<Profile>,
) -> Result<Arc<dyn ServedStore>> {
    let profile = profile.ok_or_else(|| {
        Error::Refused(format!(
            "{}: a store of similar documents without a text profile",
            config.store.display()
        ))
    })?;
    let access = if config.read_only {
        StoreAccess::following(&config.store_options.fs, &config.store)?
    } else {
        let documents = SimilarDocuments::open(&config.store, options(config), profile.clone(), settings)?;
        warn_about_torn_tail(documents.store().torn_tail());
        StoreAccess::Writing(SimilarWriter::new(documents))
    };
    let comparer = DocumentComparer::new(&access.snapshot(), settings, profile)?;
    Ok(Arc::new(SimilarStore::new(access, comparer)))
}

/// Returns the text profile: the one that the store records, or the one of the configuration if the store records none.
fn profile(config: &ServerConfig, stored: &str) -> Result<Option<Profile>> {
    let name = if stored.is_empty() { config.profile.as_deref() } else { Some(stored) };
    name.map(|name| Profile::with_resources(name, &config.resources)).transpose()
}

fn options(config: &ServerConfig) -> StoreOptions {
    // A request that asks for more durability waits for a sync after its writes.
    StoreOptions { create: false, durability: Durability::Os, ..config.store_options.clone() }
}

fn warn_about_torn_tail(torn_tail: Option<&Error>) {
    if let Some(torn_tail) = torn_tail {
        tracing::warn!("{torn_tail}");
    }
}
