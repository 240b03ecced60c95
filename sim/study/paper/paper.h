// A study of a paper as data. Programs are traced once in each form that is needed; a replay of a trace on a device, in
// one of the ways that the paper compares, gives an outcome, which is kept; exhibits are made of outcomes. A paper's
// own files have its outcome (replayed.h), its exhibits and one `Paper`, which a row of sim/study/studies.cpp names.
// docs/extending.md has an example.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/study/experiment/study.h"
#include "sim/study/paper/runs.h"

namespace gridloom::study {

/// A way to run programs that the paper compares with others.
struct Scheme {
  std::string_view name;         ///< as exhibits call it
  std::string_view policy;       ///< of the replay
  std::string_view arguments{};  ///< of the program, behind all others; words
  std::string_view parts{};      ///< proposed hardware in place of the device's own: hardware::Equip
  std::string_view launches{};   ///< how kernels launch others: LaunchForms
  std::string_view keys{};       ///< the key of the experiment's file that lists further keys of the device
};

struct Paper {
  std::string_view name;  ///< of the study, and of what is kept
  int version = 1;        ///< rises when a change of policies, parts or what is kept makes old measurements wrong
  std::span<const ExhibitRow<Runs>> exhibits;
  std::span<const Scheme> schemes{};  ///< the first is the one that others are compared with

  // Keys of the experiment's file. Besides, `keys` lists keys of the device, if it is there.
  std::string_view programs = "programs";  ///< below it stand the programs, with their arguments
  std::string_view devices = "device";     ///< the device; of several, most exhibits are about the last

  std::string_view folder{};         ///< of tests/workloads that has the programs; empty: `name`
  std::string_view trace_options{};  ///< of `gridloom run`; words
  /// The first word of the arguments is the program's name; else it is the one in the experiment's file.
  bool names_programs = false;
  bool keys_stay = false;     ///< `keys` are for the experiment's device alone, not for others that exhibits name
  bool kernels_only = false;  ///< replays have no copies and no time of programs: ReplayInputs
  std::string_view tried{};   ///< the scheme whose devices are made once with the study, for the mistakes in its keys;
                              ///< empty: the first
  /// Adds to a run what cannot be told in rows, from the device as it is without that. Null: nothing.
  Status (*complete)(const Settings& settings, const sim::DeviceSpec& device, Run& run) = nullptr;
};

Result<std::unique_ptr<Study>> MakePaperStudy(const Paper& paper, const Settings& settings,
                                              const Environment& environment);

}  // namespace gridloom::study
