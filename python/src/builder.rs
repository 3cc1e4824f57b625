//! A store that is built in one go.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use simstore::any::{AnyBuilder, Width};
use simstore::progress::ProgressCallback;
use simstore::{BuildOptions, Error, Result};

use crate::entries::{Entries, Id, IdRef};
use crate::fingerprints::one;
use crate::gate::{self, Call};
use crate::numbers;
use crate::settings::{codec_of, path_of, plan_of, profile_of};
use crate::snapshot::Snapshot;
use crate::text_profile::TextProfile;
use crate::under_way::OneAtATime;

/// Rows of an array that are inserted between two questions whether to go on.
const ROWS: usize = 1 << 14;

/// Builds a store from fingerprints in any order, in bounded memory: the smallest and fastest there is of so many.
///
/// The store appears when it is complete and durable, at the end of the ``with`` block or by `finish`; after an exception there is
/// none, and a store that was to be replaced is as it was.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The store's folder, which is not there, or empty.
/// distance : int
///     The largest distance that queries will ask for, in bits.
/// bits : {64, 128}, optional
///     Width of the fingerprints: that of ``profile``, or 64.
/// codec : {"first-difference", "gap", "elias-fano", "all-differences"}, optional
///     How fingerprints are compressed: "first-difference" by default. "elias-fano" is fastest
///     to query; "gap" is smallest for random fingerprints, "all-differences" where many are near one another.
/// plan : str, optional
///     Which tables are kept, as ``simstore plan`` lists them; "auto" by default.
/// profile : Profile or str, optional
///     How texts became fingerprints: kept with the store.
/// memory : int or str, optional
///     Memory for sorting, in bytes, or as "8G": 16 MiB or more; a quarter of the machine's by default. What is more goes to temporary
///     files in the store's folder.
/// ids : bool
///     Whether ids are kept.
/// replace : bool
///     Whether a store that is there is replaced, once the new one is complete; FileExistsError otherwise.
///
/// Raises
/// ------
/// FileExistsError
///     If there is a store, or anything else.
/// LockedError
///     If the store is being written.
///
/// Notes
/// -----
/// One call at a time uses a builder; those of other threads wait. In the middle of `insert_many`, in a signal handler say, the same
/// thread cannot use it: RuntimeError.
///
/// Examples
/// --------
/// >>> import numpy as np, simstore
/// >>> with simstore.Builder("pages") as builder:
/// ...     builder.insert(0b1111, 1, "https://example.org/")
/// ...     builder.insert_many(np.arange(10, 20, dtype=np.uint64), ids=np.arange(2, 12))
/// >>> len(simstore.Snapshot("pages"))
/// 10
#[pyclass(frozen, module = "simstore")]
pub(crate) struct Builder {
    /// `None` when it has ended.
    builder: OneAtATime<Option<Building>>,
    profile: TextProfile,
    /// The call that is under way: what is told of progress.
    call: Arc<Mutex<Option<Arc<Call>>>>,
    path: PathBuf,
    width: Width,
}

/// A store that is built, and how its documents are called.
struct Building {
    builder: AnyBuilder,
    /// Whether documents are called by names; `None` while there is none.
    by_name: Option<bool>,
    /// The position of the next one that is called by a name: its number, as `simstore build` has it.
    position: u64,
}

impl Building {
    fn insert(&mut self, fingerprint: Option<u128>, id: IdRef<'_>, name: Option<&str>) -> Result<()> {
        let by_name = matches!(id, IdRef::Name(_));
        if *self.by_name.get_or_insert(by_name) != by_name {
            return Err(Error::BadArgument(
                "some ids are numbers, and some are names: a store that is built has one kind".to_owned(),
            ));
        }
        let (id, name) = match id {
            IdRef::Number(id) => (id, name),
            IdRef::Name(name) => {
                self.position += 1;
                (self.position - 1, Some(name))
            }
        };
        match (fingerprint, name) {
            (None, _) => Ok(()),
            (Some(fingerprint), Some(name)) => self.builder.insert_named(fingerprint, id, name),
            (Some(fingerprint), None) => self.builder.insert(fingerprint, id),
        }
    }
}

impl Builder {
    /// Inserts something. After a bug nobody knows what the builder holds: it has ended.
    fn insert_with<T>(
        &self,
        py: Python<'_>,
        name: &str,
        insert: impl FnOnce(&mut Building) -> PyResult<T>,
    ) -> PyResult<T> {
        self.builder.with(py, name, |held| {
            let inserted = insert(held.as_mut().ok_or_else(|| self.ended())?);
            if inserted.as_ref().is_err_and(|error| is_bug(py, error)) {
                *held = None;
            }
            inserted
        })
    }

    /// The builder, which ends with this call.
    fn take(&self, py: Python<'_>, name: &str) -> PyResult<Option<AnyBuilder>> {
        self.builder.with(py, name, |held| Ok(held.take().map(|held| held.builder)))
    }

    fn ended(&self) -> PyErr {
        PyValueError::new_err(format!("the builder has ended: {}; begin another", self.path.display()))
    }

    /// Says whose progress is told from now on.
    fn begin(&self, call: &Arc<Call>) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(call));
    }
}

/// Whether an exception says that simstore has a bug.
fn is_bug(py: Python<'_>, error: &PyErr) -> bool {
    let class = py.import("simstore.errors").and_then(|errors| errors.getattr("InternalError"));
    class.is_ok_and(|class| error.is_instance(py, &class))
}

/// Tells the call that is under way how far a build has come.
fn callback(call: &Arc<Mutex<Option<Arc<Call>>>>) -> ProgressCallback {
    let call = Arc::clone(call);
    ProgressCallback::new(move |progress| {
        let call = call.lock().unwrap_or_else(PoisonError::into_inner).clone();
        call.map_or(std::ops::ControlFlow::Continue(()), |call| {
            call.step("fingerprints written", progress.done, progress.total);
            call.go_on()
        })
    })
}

#[pymethods]
impl Builder {
    #[new]
    #[pyo3(signature = (path, *, distance=3, bits=None, codec=None, plan=None, profile=None, memory=None, ids=true, replace=false))]
    #[expect(clippy::too_many_arguments, reason = "settings, by name")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        #[pyo3(from_py_with = numbers::required_distance)] distance: u32,
        #[pyo3(from_py_with = numbers::bits)] bits: Option<u32>,
        codec: Option<&str>,
        plan: Option<&str>,
        profile: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = numbers::memory)] memory: Option<u64>,
        ids: bool,
        replace: bool,
    ) -> PyResult<Builder> {
        let given = profile;
        let (profile, profile_bits) = profile_of(profile)?;
        let name = profile.clone().unwrap_or_default();
        let bits = bits.or(profile_bits).unwrap_or(64);
        let call = Arc::default();
        let builder = gate::quick(py, || {
            let options = BuildOptions {
                distance,
                codec: codec_of(codec)?.unwrap_or_default(),
                plan: plan_of(plan)?.unwrap_or_default(),
                profile: profile.unwrap_or_default(),
                memory,
                ids,
                replace,
                progress: Some(callback(&call)),
                ..BuildOptions::default()
            };
            AnyBuilder::create(&path, bits, options)
        })?;
        let width = builder.width();
        let profile = TextProfile::new(&name, width, &path, given);
        let building = Building { builder, by_name: None, position: 0 };
        Ok(Builder { builder: OneAtATime::new(Some(building)), profile, call, path, width })
    }

    /// Adds a fingerprint, or that of a text, with an id. The same pair again changes nothing; a fingerprint may have any number of ids.
    ///
    /// Parameters
    /// ----------
    /// fingerprint : int
    ///     Or ``text``.
    /// id : int or str
    ///     A number; or a name, whose number is then its position among all documents, from 0, as for `simstore build`. All ids of a
    ///     store that is built are of one kind.
    /// name : str, optional
    ///     The name of a document whose id is a number, up to 64 KiB. Ids of named documents come in ascending order.
    /// text : str
    ///     A text, whose fingerprint the profile makes.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the text has no letter and no digit, and so no fingerprint; if the builder has no profile.
    #[pyo3(signature = (fingerprint=None, id=None, name=None, *, text=None))]
    fn insert<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<()> {
        let fingerprint = self.profile.inserted(py, fingerprint, text, |one| self.fingerprint(one))?;
        let id = Id::of(id, name)?;
        self.insert_with(py, "Builder.insert", |building| {
            gate::quick(py, || building.insert(Some(fingerprint), id.as_ref(), name))
        })
    }

    /// Adds arrays of fingerprints and ids. A call that is interrupted or fails has inserted the first ones.
    ///
    /// Parameters
    /// ----------
    /// fingerprints : array_like, shape (n,)
    ///     Numpy's of uint64, or of uint8 of shape (n, 16); Arrow's of uint64 or fixed_size_binary[16]; a list of ints. Or ``texts``.
    /// ids : array_like, shape (n,)
    ///     Ints from 0 to 2**64 - 1; or names, as for `insert`.
    /// names : array_like of str or None, shape (n,), optional
    ///     Ids of named documents come in ascending order.
    /// texts : iterable of str or None
    ///     Texts, as `Profile.fingerprints` takes them. Those without a fingerprint are left out, with a warning; they have a position.
    /// progress : bool or callable, optional
    ///     True for a bar of tqdm; a callable is called with a `Progress` some times a second.
    #[pyo3(signature = (fingerprints=None, ids=None, names=None, *, texts=None, progress=None))]
    fn insert_many(
        &self,
        py: Python<'_>,
        fingerprints: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
        texts: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut entries = Entries::read(fingerprints, ids, names, texts, self.width.bits())?;
        self.insert_with(py, "Builder.insert_many", |building| {
            gate::told(py, progress, |call| {
                self.begin(call);
                entries.make(&self.profile, call)?;
                for at in 0..entries.len() {
                    building.insert(entries.fingerprint(at), entries.id(at), entries.name(at))?;
                    if (at + 1) % ROWS == 0 || at + 1 == entries.len() {
                        call.check()?;
                        call.step("fingerprints", at as u64 + 1, entries.len() as u64);
                    }
                }
                Ok(())
            })
        })
    }

    /// Sorts, writes all files, and makes the store visible and durable. Interrupted, it leaves nothing.
    ///
    /// Parameters
    /// ----------
    /// progress : bool or callable, optional
    ///     True for a bar of tqdm; a callable is called with a `Progress` some times a second. It counts fingerprints written, over
    ///     all tables.
    ///
    /// Returns
    /// -------
    /// Snapshot
    #[pyo3(signature = (*, progress=None))]
    fn finish(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Snapshot> {
        let builder = self.take(py, "Builder.finish")?.ok_or_else(|| self.ended())?;
        gate::told(py, progress, |call| {
            self.begin(call);
            builder.finish()
        })
        .map(Snapshot::new)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let this = slf.get();
        let is_there = |held: &mut Option<Building>| held.is_some().then_some(()).ok_or_else(|| this.ended());
        this.builder.with(slf.py(), "Builder.__enter__", is_there)?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        match self.take(py, "Builder.__exit__")? {
            Some(builder) if failed => gate::quick(py, || {
                drop(builder);
                Ok(())
            }),
            Some(builder) => gate::long(py, |call| {
                self.begin(call);
                builder.finish().map(drop)
            }),
            None => Ok(()),
        }
    }

    /// The store's folder.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        path_of(py, &self.path)
    }

    /// Width of the fingerprints, in bits: 64 or 128.
    #[getter]
    fn bits(&self) -> u32 {
        self.width.bits()
    }

    fn __repr__(&self) -> String {
        format!("Builder('{}', bits={})", self.path.display(), self.width.bits())
    }
}

impl Builder {
    fn fingerprint(&self, object: &Bound<'_, PyAny>) -> PyResult<u128> {
        one(object, self.width)
    }
}
