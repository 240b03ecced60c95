#include "interpose/launcher/replay/options.h"

namespace gridloom::launcher {

void DescribeReplay(CLI::App& app, study::ReplayOptions& options) {
  app.add_option("--device,-d", options.devices, "devices, or YAML files, separated by commas (default: h200)")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--policy,-p", options.policies, "scheduling policies, separated by commas (default: leftover)")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--hardware", options.hardware,
                 "proposed parts that the devices get in place of their own (`gridloom hardware` lists them), or "
                 "`none`; again to compare "
                 "with other parts: --hardware none --hardware lazy-ctas")
      ->type_name("NAME,...")
      ->allow_extra_args(false);
  app.add_option("--set", options.sets,
                 "a key of the device file, or hardware.PART.KEY, and the values that it takes; again for another key, "
                 "in every combination")
      ->type_name("KEY=VALUE,...")
      ->allow_extra_args(false);
  app.add_option("--storage", options.storage,
                 "storage that the programs read their inputs from and write their results to, such as 500MB/s, "
                 "separated by commas (default: "
                 "it takes no time)")
      ->type_name("RATE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--lowering", options.lowering,
                 "what of kernels is simulated: their PTX (none) or what a GPU executes in its place (full), or both, "
                 "separated by a comma (default: full)")
      ->type_name("HOW,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--report,-r", options.report,
                 "folder for a report: HTML, JSON, CSV, trace events; what is finished in it is not done again")
      ->type_name("DIR");
  app.add_flag("--fresh", options.fresh, "do everything again, also what is finished in the report's folder");
  app.add_option("--baseline", options.baseline,
                 "device, policy or both (with a comma) that speed-ups refer to (default: the first)")
      ->type_name("NAME");
  app.add_option("--profiles", options.profiles,
                 "profiles of kernels on the device, for the policy kernelet (default: it makes them)")
      ->type_name("FILE");
  app.add_flag("!--no-alone", options.alone,
               "do not replay each program of a mix alone, which stp, antt and fairness are made of");
  app.add_flag("--kernels-only", options.kernels_only,
               "launches alone, all there from the beginning: no copies, no time of the programs'");
  app.add_option("--most-instructions", options.most_instructions,
                 "millions of warp instructions that one launch may execute; a few bytes of a trace can ask for any "
                 "number (default: 4000; 0: "
                 "all)")
      ->type_name("N");
  app.add_option("--jobs,-j", options.jobs, "replays at the same time (default: one per core)")->type_name("N");
  app.add_option("--threads", options.threads, "host threads of each replay; the results are the same (default: 1)")
      ->type_name("N");
}

}  // namespace gridloom::launcher
