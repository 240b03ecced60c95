// What the stand-in of a real driver tells tests beyond the driver's own functions, which they look up by name.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

/// A launch that the stand-in took.
struct FakeLaunch {
  bool sliced = false;  ///< of a module that has the slice pass's parameters
  std::array<unsigned, 3> grid{};
  void* stream = nullptr;
  std::vector<std::uint32_t> params;  ///< the first four bytes of each
  std::vector<std::uint32_t> buffer;  ///< of CU_LAUNCH_PARAM_BUFFER_POINTER
};

/// What loading and launching sliced modules answers, and the architecture that they say they were compiled for.
FAKE_EXPORT void fake_set_sliced(int load_status, int launch_status, int version);
/// As if so many threads had ended that a form counts at a place of the memory whose address ends with these 32 bits.
FAKE_EXPORT void fake_end_threads(std::uint32_t address, std::uint32_t place, std::uint32_t threads);
/// The launches since it was called last.
FAKE_EXPORT void fake_take_launches(std::vector<FakeLaunch>* launches);
