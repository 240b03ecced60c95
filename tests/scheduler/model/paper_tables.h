// What Kernelet's Table 4 says of its eight benchmarks, in the order of the table.
#pragma once

#include <array>
#include <string_view>

namespace gridloom::model {

struct PaperKernel {
  std::string_view name;
  double c2050_pur, c2050_mur, c2050_occupancy;
  double gtx680_pur, gtx680_mur, gtx680_occupancy;
};

inline constexpr std::array<PaperKernel, 8> kPaperKernels = {{
    {"PC", 0.0096, 0.1404, 1.000, 0.0072, 0.1746, 1.00},
    {"SAD", 0.1498, 0.1120, 0.167, 0.1062, 0.1351, 0.25},
    {"SPMV", 0.3464, 0.0030, 1.000, 0.3027, 0.0043, 1.00},
    {"ST", 0.3629, 0.1156, 0.667, 0.2016, 0.1179, 1.00},
    {"MM", 0.5804, 0.0161, 0.677, 0.5321, 0.0569, 1.00},
    {"MRIQ", 0.8539, 0.0002, 0.833, 1.6784, 0.0007, 1.00},
    {"BS", 0.8642, 0.0604, 0.677, 1.2007, 0.1323, 1.00},
    {"TEA", 0.9978, 0.0196, 0.677, 1.1417, 0.0353, 1.00},
}};

}  // namespace gridloom::model
