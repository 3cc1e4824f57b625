//! `simstore build`: documents or fingerprints to a store.

use std::ops::ControlFlow;

use simstore::plan::Plan;
use simstore::progress::ProgressCallback;
use simstore::{BuildOptions, Fingerprint, PlanChoice, each_width};
use simstore_corpus::InputKind;

pub(crate) use self::args::BuildArgs;
use self::args::codec_and_objective;
use self::report::report;
use crate::input_warnings::warn_about_fingerprints;
use crate::command_error::{CommandError, CommandResult, print_message};
use crate::inputs;
use crate::profile_args::check_bits;
use crate::progress::ProgressDisplay;
use crate::width::check_distance;

mod args;
mod report;
mod similar_store;

pub(crate) fn run(args: &BuildArgs, progress: &ProgressDisplay) -> CommandResult {
    if let Some(similar) = args.similar {
        return similar_store::build(args, similar, progress);
    }
    each_width!(args.bits, type F => build::<F>(args, progress))
}

fn build<F: Fingerprint>(args: &BuildArgs, progress: &ProgressDisplay) -> CommandResult {
    check_distance::<F>(args.distance)?;
    let inputs = args.documents.open_inputs(&args.inputs, progress)?;
    let kind = inputs::kind(&inputs)?;
    // Of fingerprints only the user can know how they were made.
    let given = args.documents.profile.requested_profile()?;
    let told = kind == InputKind::Documents || given.is_some();
    let profile = given.unwrap_or_default();
    check_bits::<F>(&profile)?;
    let bar = progress.progress_bar("writing tables");
    let shown = bar.clone();
    let (codec, codec_for) = codec_and_objective(args)?;
    let options = BuildOptions {
        distance: args.distance,
        codec,
        codec_objective: codec_for,
        plan: args.plan.clone(),
        block_size: args.block_size,
        span: args.span,
        memory: args.memory,
        ids: !args.no_ids,
        replace: args.force,
        profile: if told { profile.to_string() } else { String::new() },
        progress: Some(ProgressCallback::new(move |progress| {
            shown.set_length(progress.total);
            shown.set_position(progress.done);
            ControlFlow::Continue(())
        })),
        ..BuildOptions::default()
    };
    if let PlanChoice::Named(name) = &args.plan {
        Plan::<F>::named(name, args.distance).map_err(|error| CommandError::Usage(error.to_string()))?;
    }
    let (store, counts) =
        simstore_corpus::build::build::<F>(&args.store, options, &inputs, &profile, args.names, progress)
            .map_err(CommandError::usage)?;
    bar.finish_and_clear();
    warn_about_fingerprints(&counts, kind, progress);
    if counts.read == counts.empty {
        print_message("warning: the inputs have no fingerprints; the store is empty");
    }
    report(args, &store, counts, progress)
}
