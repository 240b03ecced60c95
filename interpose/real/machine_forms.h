// Sliced forms of kernels that come without PTX, on a real GPU (--slice-machine-code): the machine code that the driver
// would take out of an image, with a sliced form beside each kernel that can have one (docs/machine-code.md#slices).
// The driver loads that in the place of the program's image, so kernels and forms share variables and constants.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "rewriter/image/image_set.h"
#include "rewriter/machine/slice/slice_cubin.h"
#include "rewriter/support/compute_capability.h"
#include "rewriter/support/result.h"

namespace gridloom::api {

struct MachineForms {
  std::vector<std::byte> image{};  ///< for the driver
  std::map<std::string, machine::SlicedKernel, std::less<>> kernels{};
  unsigned count = 0;  ///< of kernels that have a form
};

/// Whether the settings ask for them.
bool WantsMachineForms();
/// Whether the code in a file is sliced: NVIDIA's libraries only where the settings say so.
Status CheckOrigin(const char* file);
/// The file that a place in memory was mapped from; nullptr when it is none.
const char* FileOf(const void* place);

/// An error says why there are none.
Result<MachineForms> MakeMachineForms(const image::ImageSet& images, ComputeCapability device);

/// Whether that is the name of a form.
bool IsFormName(std::string_view name);

}  // namespace gridloom::api
