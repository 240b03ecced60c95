#include "scheduler/model/profile_file.h"

#include <catch2/catch.hpp>
#include <random>

namespace gridloom::model {
namespace {

ProfileFile Example() {
  ProfileFile file;
  file.sm = {.sms = 14,
             .schedulers = 2,
             .peak_ipc = 2,
             .empty = {.free_ctas = 8, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152},
             .request_bytes = 32,
             .latency_cycles = 300,
             .requests_per_cycle = 0.1 / 3,
             .contention_slope = 0.7,
             .contention_offset = 11,
             .request_interval = 2};
  for (const char* name : {"_Z3addPf", "odd \"name\".$1"}) {
    file.kernels.push_back(
        {.kernel = name,
         .needs = {.warps = 4, .registers = 4096, .shared_bytes = 1024},
         .max_resident_ctas = 8,
         .instructions_per_cta = 1234.5,
         .memory_ratio = 0.1,
         .uncoalesced_share = 0.3,
         .coalesced_requests = 1.7,
         .uncoalesced_requests = 31,
         .pur = 0.5,
         .mur = 0.25,
         .ipc = 1.01,
         .smallest_slice = 42,
         .demands = {0.25, 0, 1.5},
         .refinement = {
             .dependency_cycles = 3.5, .instructions_per_issue = 1.2, .loads_per_stall = 2, .latency_cycles = 99}});
  }
  return file;
}

std::string MessageOf(std::string_view json) {
  const auto file = ParseProfiles(json);
  return file.ok() ? "" : file.error().message;
}

TEST_CASE("Profiles_WrittenAndRead_AreTheSame") {
  const ProfileFile file = Example();
  const std::string text = ToJson(file);
  const auto read = ParseProfiles(text);
  REQUIRE(read.ok());
  CHECK(ToJson(*read) == text);
  CHECK(read->sm.requests_per_cycle == file.sm.requests_per_cycle);
  CHECK(read->sm.empty.free_registers == 32768);
  REQUIRE(read->kernels.size() == 2);
  CHECK(read->kernels[1].kernel == file.kernels[1].kernel);
  CHECK(read->kernels[1].needs.shared_bytes == 1024);
  CHECK(read->kernels[1].refinement.latency_cycles == 99);
  CHECK(read->kernels[1].smallest_slice == 42);
  CHECK(read->kernels[1].demands == file.kernels[1].demands);
}

TEST_CASE("ParseProfiles_WhatIsWrong_IsNamed") {
  const std::string sm =
      R"("sm": {"sms": 1, "max_ctas": 8, "max_warps": 48, "latency_cycles": 300, "requests_per_cycle": 0.1})";
  const auto with = [&](const std::string& kernels) {
    return "{\"version\": 1, " + sm + ", \"kernels\": " + kernels + "}";
  };
  CHECK(MessageOf(with("[]")).empty());
  CHECK(MessageOf(with(R"([{"kernel": "k", "warps": 1, "max_resident_ctas": 1}])")).empty());
  CHECK(MessageOf("{") == "not JSON");
  CHECK(MessageOf("[]") == "not an object with 'version', 'sm' and 'kernels'");
  CHECK(MessageOf("{}") == "'version' is missing");
  CHECK(MessageOf("{\"version\": 2, " + sm + ", \"kernels\": []}") == "version 2 is not known; this reads version 1");
  CHECK(MessageOf("{\"version\": 1, " + sm + ", \"kernls\": []}") ==
        "the file has no 'kernls'; did you mean 'kernels'?");
  CHECK(MessageOf(with("3")) == "'kernels' must be a list");
  CHECK(MessageOf(with("[3]")) == "kernel 1 must be an object");
  CHECK(MessageOf(with(R"([{"kernel": "k", "wraps": 1}])")) == "kernel 1 has no 'wraps'; did you mean 'warps'?");
  CHECK(MessageOf(with(R"([{"kernel": "k", "warps": -1}])")) ==
        "kernel 1, 'warps' must be a whole number of at most 4294967295");
  CHECK(MessageOf(with(R"([{"kernel": "k", "warps": 4294967296}])")) ==
        "kernel 1, 'warps' must be a whole number of at most 4294967295");
  CHECK(MessageOf(with(R"([{"kernel": "k", "pur": "high"}])")) == "kernel 1, 'pur' must be a number");
  CHECK(MessageOf(with(R"([{"kernel": 3}])")) == "kernel 1, 'kernel' must be a text");
  CHECK(MessageOf(with(R"([{"kernel": "k"}])")).find("needs.warps") != std::string::npos);
  CHECK(MessageOf(with(R"([{"warps": 1, "max_resident_ctas": 1}])")) == "kernel 1 has no name");
  const std::string one = R"({"kernel": "k", "warps": 1, "max_resident_ctas": 1})";
  CHECK(MessageOf(with("[" + one + "," + one + "]")) == "two profiles of kernel k with blocks of one size");
  const std::string wide = R"({"kernel": "k", "warps": 2, "max_resident_ctas": 1, "demands": [0.5]})";
  CHECK(MessageOf(with("[" + one + "," + wide + "]")).empty());
  CHECK(MessageOf(with(R"([{"kernel": "k", "demands": [true]}])")) == "kernel 1, 'demands' must be a list of numbers");
  CHECK(MessageOf(with(R"([{"kernel": "k", "warps": 1, "max_resident_ctas": 1, "demands": [-1]}])")).find("demands") !=
        std::string::npos);
  CHECK(LoadProfiles("/nowhere/profiles.json").error().message ==
        "cannot read /nowhere/profiles.json: No such file or directory");
}

TEST_CASE("Profiles_OfKernelsWithNamesThatAreNoText_AreWritten") {
  ProfileFile file = Example();
  file.kernels[0].kernel = "caf\xe9";  // as a foreign trace may name one
  CHECK(ParseProfiles(ToJson(file)).ok());
}

TEST_CASE("ParseProfiles_DamagedFiles_FailOrGiveValidProfiles") {
  const std::string text = ToJson(Example());
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = text;
    for (std::uint32_t n = 1 + static_cast<std::uint32_t>(random() % 4); n > 0; --n) {
      const std::size_t at = random() % damaged.size();
      if (random() % 3 == 0) damaged.erase(at, 1 + random() % 20);
      else damaged[at] = static_cast<char>(random());
    }
    const auto file = ParseProfiles(damaged);
    if (!file.ok()) continue;
    CHECK(Validate(file->sm).ok());
    for (const KernelProfile& profile : file->kernels) CHECK(Validate(profile).ok());
  }
}

}  // namespace
}  // namespace gridloom::model
