//! The class `Builder`, which builds a store in a single operation.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use simstore::any::{AnyBuilder, Width};
use simstore::progress::ProgressCallback;
use simstore::{BuildOptions, Error, Result};
use simstore_io::IdRef;

use crate::call::{self, Call};
use crate::fingerprints::read_one;
use crate::new_documents::{NewDocuments, document_id};
use crate::number_arguments;
use crate::reentrancy::Exclusive;
use crate::settings::{parse_codec, parse_plan, path_to_python, read_profile};
use crate::snapshot::PySnapshot;
use crate::text_profile::TextProfile;

/// Rows of an array that are inserted between checks for interruption.
const ROWS_PER_CANCEL_CHECK: usize = 1 << 14;

/// Builds a store from fingerprints in any order, in bounded memory. A store built in this way is as small and fast as possible.
///
/// The store appears when it is complete and durable, at the end of the ``with`` block or by `finish`. After an exception there is no new
/// store, and an existing store is unchanged.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The store's directory. It must be missing or empty, or have a store that ``replace`` allows to replace.
/// distance : int
///     The largest distance of later queries, in bits.
/// bits : {64, 128}, optional
///     Width of the fingerprints. The default is the width of ``profile``, or 64.
/// codec : {"first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"}, optional
///     The codec that compresses the fingerprints: "first-difference" by default. "prefix-lines" is fastest to query up to distance 6.
///     "elias-fano" is fastest at distance 8 and more, and if many fingerprints are near one another. "gap" is smallest for random fingerprints, "all-differences" for many near-duplicates.
/// plan : str, optional
///     The plan of the tables, as listed by ``simstore plan``; "auto" by default.
/// profile : Profile or str, optional
///     The profile that turns texts into fingerprints. The store records the profile's name.
/// memory : int or str, optional
///     Memory for sorting, in bytes, or as "8G": 16 MiB or more; by default a quarter of the machine's. If more is needed, temporary files
///     are written in the store's directory.
/// ids : bool
///     Whether the store keeps ids.
/// replace : bool
///     Whether an existing store is replaced once the new one is complete. If False, an existing store raises FileExistsError.
///
/// Raises
/// ------
/// FileExistsError
///     If the directory has a store or other files.
/// LockedError
///     If another writer has the store open.
///
/// Notes
/// -----
/// Calls of several threads run one after the other. During `insert_many`, a call in the same thread, for example from a signal handler,
/// raises RuntimeError.
///
/// Examples
/// --------
/// >>> import numpy as np, simstore
/// >>> with simstore.Builder("pages") as builder:
/// ...     builder.insert(0b1111, 1, "https://example.org/")
/// ...     builder.insert_many(np.arange(10, 20, dtype=np.uint64), ids=np.arange(2, 12))
/// >>> len(simstore.Snapshot("pages"))
/// 10
#[pyclass(frozen, module = "simstore", name = "Builder")]
pub(crate) struct PyBuilder {
    /// The engine's builder; `None` once it has ended.
    builder: Exclusive<Option<BuilderState>>,
    profile: TextProfile,
    /// The newest call from Python. It receives the progress that the engine's builder reports.
    call: Arc<Mutex<Option<Arc<Call>>>>,
    path: PathBuf,
    width: Width,
}

/// The engine's builder, and how documents get their ids.
struct BuilderState {
    builder: AnyBuilder,
    /// Whether ids are names; `None` before the first document.
    has_name_ids: Option<bool>,
    /// Id of the next document with a name: its position among all documents, as in `simstore build`.
    position: u64,
}

impl BuilderState {
    fn insert(&mut self, fingerprint: Option<u128>, id: IdRef<'_>, name: Option<&str>) -> Result<()> {
        let by_name = matches!(id, IdRef::Name(_));
        if *self.has_name_ids.get_or_insert(by_name) != by_name {
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

impl PyBuilder {
    /// Inserts documents by calling `insert`. After an internal error the builder's state is unknown, so the builder
    /// ends. `name` is the name of the Python method, for errors.
    fn insert_with<T>(
        &self,
        py: Python<'_>,
        name: &str,
        insert: impl FnOnce(&mut BuilderState) -> PyResult<T>,
    ) -> PyResult<T> {
        self.builder.with(py, name, |state| {
            let inserted = insert(state.as_mut().ok_or_else(|| self.ended())?);
            if inserted.as_ref().is_err_and(|error| is_internal_error(py, error)) {
                *state = None;
            }
            inserted
        })
    }

    /// Takes the engine's builder out of this object, so that later calls fail. Returns `None` if the builder has
    /// already ended. `name` is the name of the Python method, for errors.
    fn take(&self, py: Python<'_>, name: &str) -> PyResult<Option<AnyBuilder>> {
        self.builder.with(py, name, |state| Ok(state.take().map(|state| state.builder)))
    }

    fn ended(&self) -> PyErr {
        PyValueError::new_err(format!("the builder has ended: {}; begin another", self.path.display()))
    }

    /// Sets the call that receives progress.
    fn begin(&self, call: &Arc<Call>) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(call));
    }
}

/// Whether an exception reports a bug in simstore.
fn is_internal_error(py: Python<'_>, error: &PyErr) -> bool {
    let class = py.import("simstore.errors").and_then(|errors| errors.getattr("InternalError"));
    class.is_ok_and(|class| error.is_instance(py, &class))
}

/// Returns a progress callback for a build. It passes the progress on to `call`, the running Python call, which shows
/// it and can cancel the build.
fn callback(call: &Arc<Mutex<Option<Arc<Call>>>>) -> ProgressCallback {
    let call = Arc::clone(call);
    ProgressCallback::new(move |progress| {
        let call = call.lock().unwrap_or_else(PoisonError::into_inner).clone();
        call.map_or(std::ops::ControlFlow::Continue(()), |call| {
            call.report_step("fingerprints written", progress.done, progress.total);
            call.control_flow()
        })
    })
}

#[pymethods]
impl PyBuilder {
    #[new]
    #[pyo3(signature = (path, *, distance=3, bits=None, codec=None, plan=None, profile=None, memory=None, ids=true, replace=false))]
    #[expect(clippy::too_many_arguments, reason = "settings, by name")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        #[pyo3(from_py_with = number_arguments::required_distance)] distance: u32,
        #[pyo3(from_py_with = number_arguments::bits)] bits: Option<u32>,
        codec: Option<&str>,
        plan: Option<&str>,
        profile: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number_arguments::memory)] memory: Option<u64>,
        ids: bool,
        replace: bool,
    ) -> PyResult<PyBuilder> {
        let profile_object = profile;
        let (profile, profile_bits) = read_profile(profile)?;
        let name = profile.clone().unwrap_or_default();
        let bits = bits.or(profile_bits).unwrap_or(64);
        let call = Arc::default();
        let builder = call::detached(py, || {
            let options = BuildOptions {
                distance,
                codec: parse_codec(codec)?.unwrap_or_default(),
                plan: parse_plan(plan)?.unwrap_or_default(),
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
        let profile = TextProfile::new(&name, width, &path, profile_object);
        let building = BuilderState { builder, has_name_ids: None, position: 0 };
        Ok(PyBuilder { builder: Exclusive::new(Some(building)), profile, call, path, width })
    }

    /// Adds a fingerprint (given, or made from a text) with an id. Adding the same pair again changes nothing. A fingerprint may have
    /// several ids.
    ///
    /// Parameters
    /// ----------
    /// fingerprint : int
    ///     The fingerprint, if ``text`` is not given.
    /// id : int or str
    ///     A number, or a name. A document with a name as id gets a number: its position among all documents of
    ///     the store, from 0, as in `simstore build`. One builder accepts either numbers or names, not both.
    /// name : str, optional
    ///     The name of a document with a numeric id, up to 64 KiB. Insert named documents by ascending id.
    /// text : str
    ///     A text that the profile turns into a fingerprint.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the text has no fingerprint, because it has no letter and no digit, or if the builder has no profile.
    #[pyo3(signature = (fingerprint=None, id=None, name=None, *, text=None))]
    fn insert<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        id: Option<&Bound<'py, PyAny>>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> PyResult<()> {
        let fingerprint =
            self.profile.fingerprint_to_insert(py, fingerprint, text, |one| self.fingerprint(one))?;
        let id = document_id(id, name)?;
        self.insert_with(py, "Builder.insert", |building| {
            call::detached(py, || building.insert(Some(fingerprint), IdRef::from(&id), name))
        })
    }

    /// Adds arrays of fingerprints and ids. If the call fails or is interrupted, the rows before that point are inserted.
    ///
    /// Parameters
    /// ----------
    /// fingerprints : array_like, shape (n,)
    ///     Numpy array of uint64, or of uint8 with shape (n, 16); Arrow array of uint64 or fixed_size_binary[16]; a list of ints. Omit it
    ///     if ``texts`` is given.
    /// ids : array_like, shape (n,)
    ///     Ints from 0 to 2**64 - 1; or names, as for `insert`.
    /// names : array_like of str or None, shape (n,), optional
    ///     The names of documents with numeric ids. Insert named documents by ascending id.
    /// texts : iterable of str or None
    ///     Texts, as for `Profile.fingerprints`. Texts without a fingerprint are skipped with a warning. If ids
    ///     are names, the number of a document is its position (see `insert`), and skipped texts are counted too.
    /// progress : bool or callable, optional
    ///     True shows a bar of tqdm. A callable receives a `Progress` several times a second.
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
        let mut entries = NewDocuments::read(fingerprints, ids, names, texts, self.width.bits())?;
        self.insert_with(py, "Builder.insert_many", |building| {
            call::with_progress(py, progress, |call| {
                self.begin(call);
                entries.compute_fingerprints(&self.profile, call)?;
                for at in 0..entries.len() {
                    building.insert(entries.fingerprint(at), entries.id(at), entries.name(at))?;
                    if (at + 1) % ROWS_PER_CANCEL_CHECK == 0 || at + 1 == entries.len() {
                        call.check()?;
                        call.report_step("fingerprints", at as u64 + 1, entries.len() as u64);
                    }
                }
                Ok(())
            })
        })
    }

    /// Sorts, writes all files, and makes the store visible and durable. An interrupted call leaves no files.
    ///
    /// Parameters
    /// ----------
    /// progress : bool or callable, optional
    ///     True shows a bar of tqdm. A callable receives a `Progress` several times a second. The progress counts
    ///     each fingerprint once for each table of the store.
    ///
    /// Returns
    /// -------
    /// Snapshot
    #[pyo3(signature = (*, progress=None))]
    fn finish(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<PySnapshot> {
        let builder = self.take(py, "Builder.finish")?.ok_or_else(|| self.ended())?;
        call::with_progress(py, progress, |call| {
            self.begin(call);
            builder.finish()
        })
        .map(PySnapshot::new)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let this = slf.get();
        let is_there =
            |state: &mut Option<BuilderState>| state.is_some().then_some(()).ok_or_else(|| this.ended());
        this.builder.with(slf.py(), "Builder.__enter__", is_there)?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        match self.take(py, "Builder.__exit__")? {
            Some(builder) if failed => call::detached(py, || {
                drop(builder);
                Ok(())
            }),
            Some(builder) => call::interruptible(py, |call| {
                self.begin(call);
                builder.finish().map(drop)
            }),
            None => Ok(()),
        }
    }

    /// The store's directory.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        path_to_python(py, &self.path)
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

impl PyBuilder {
    fn fingerprint(&self, object: &Bound<'_, PyAny>) -> PyResult<u128> {
        read_one(object, self.width)
    }
}
