// Profiles of kernels on one device as a JSON file: who can profile (timing model, GPU) writes it, a broker that cannot
// reads it.
//
//   {"version": 1,
//    "sm": {"sms": 14, "schedulers": 2, …},                 SmModel
//    "kernels": [{"kernel": "_Z3addPf", "warps": 8, …}]}    KernelProfile; keys that are left out keep their initial
//                                                           values
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/model/kernel_profile.h"

namespace gridloom::model {

struct ProfileFile {
  SmModel sm{};
  std::vector<KernelProfile> kernels{};
};

std::string ToJson(const ProfileFile& file);

/// Fails with one sentence that names the place: not JSON, an unknown key (and the nearest right one), a value of the
/// wrong type or one that makes no sense, a kernel twice.
Result<ProfileFile> ParseProfiles(std::string_view json);

/// ParseProfiles of a file; the sentence of an error begins with the path.
Result<ProfileFile> LoadProfiles(const std::string& path);

}  // namespace gridloom::model
