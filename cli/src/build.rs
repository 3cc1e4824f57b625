//! `simstore build`: builds a store from documents or fingerprints.

use std::ops::ControlFlow;

use simstore::plan::Plan;
use simstore::progress::ProgressCallback;
use simstore::{BuildOptions, Fingerprint, PlanChoice, each_width};
use simstore_corpus::InputKind;

pub(crate) use self::args::BuildArgs;
use self::args::codec_and_objective;
use self::report::report;
use crate::command_error::{CommandError, CommandResult, print_message};
use crate::input_warnings::warn_about_fingerprints;
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
    // If the inputs are fingerprints, only the user can know their profile. Without an option, the store records none.
    let requested = args.documents.profile.requested_profile()?;
    let has_profile = kind == InputKind::Documents || requested.is_some();
    let profile = requested.unwrap_or_default();
    check_bits::<F>(&profile)?;
    let bar = progress.progress_bar("writing tables");
    let callback_bar = bar.clone();
    let (codec, codec_objective) = codec_and_objective(args)?;
    let options = BuildOptions {
        distance: args.distance,
        codec,
        codec_objective,
        plan: args.plan.clone(),
        block_size: args.block_size,
        span: args.span,
        memory: args.memory,
        ids: !args.no_ids,
        replace: args.force,
        profile: if has_profile { profile.to_string() } else { String::new() },
        progress: Some(ProgressCallback::new(move |progress| {
            callback_bar.set_length(progress.total);
            callback_bar.set_position(progress.done);
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
