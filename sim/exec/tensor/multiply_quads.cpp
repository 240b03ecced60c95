// mma.m8n8k4 of halves (PTX ISA, 9.7.14.5.1): lanes 4q to 4q + 3 and 4q + 16 to 4q + 19 form quad pair q, and each pair
// multiplies matrices of its own.
#include "sim/exec/tensor/elements.h"
#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {
namespace {

struct Product {
  float a[8][4], b[4][8], c[8][8];
};

std::uint16_t HalfAt(const FragmentRegister* registers, unsigned lane, unsigned i) {
  return static_cast<const std::uint16_t*>(registers[i / 2])[lane * 2 + i % 2];
}

/// Element i of a lane's accumulator fragment.
struct Place {
  unsigned row, column;
};
Place PlaceOf(MatrixType type, unsigned lane, unsigned i) {
  const unsigned upper = lane < 16 ? 0 : 4;
  if (type == MatrixType::kF16) return {lane % 4 + upper, i};
  return {(lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)};
}

void ReadLane(const MmaImm& imm, unsigned lane, const FragmentRegister* a, const FragmentRegister* b,
              const FragmentRegister* c, Product& to) {
  const unsigned upper = lane < 16 ? 0 : 4, t = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const float x = WidenHalf(HalfAt(a, lane, i)), y = WidenHalf(HalfAt(b, lane, i));
    if (imm.has(MmaImm::kColumnA)) to.a[i + upper][t] = x;
    else to.a[t + upper][i] = x;
    if (imm.has(MmaImm::kRowB)) to.b[t][i + upper] = y;
    else to.b[i][t + upper] = y;
  }
  for (unsigned i = 0; i < 8; ++i) {
    const Place place = PlaceOf(imm.c(), lane, i);
    to.c[place.row][place.column] =
        imm.c() == MatrixType::kF16 ? WidenHalf(HalfAt(c, lane, i)) : static_cast<const float*>(c[i])[lane];
  }
}

void WriteLane(const MmaImm& imm, unsigned lane, const Product& from, const FragmentRegister* d) {
  for (unsigned i = 0; i < 8; ++i) {
    const Place place = PlaceOf(imm.d(), lane, i);
    const float value = from.c[place.row][place.column];
    if (imm.d() == MatrixType::kF16) static_cast<std::uint16_t*>(d[i / 2])[lane * 2 + i % 2] = FloatToHalf(value);
    else static_cast<float*>(d[i])[lane] = CanonicalFloat(value);
  }
}

}  // namespace

void MultiplyQuadPairs(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b,
                       const FragmentRegister* c, const FragmentRegister* d) {
  for (unsigned pair = 0; pair < 4; ++pair) {
    Product product;
    const auto for_each_lane = [&](auto visit) {
      for (unsigned i = 0; i < 8; ++i) visit(pair * 4 + i % 4 + i / 4 * 16);
    };
    for_each_lane([&](unsigned lane) { ReadLane(imm, lane, a, b, c, product); });
    for (unsigned i = 0; i < 8; ++i) {
      for (unsigned j = 0; j < 8; ++j) {
        for (unsigned k = 0; k < 4; ++k) product.c[i][j] += product.a[i][k] * product.b[k][j];
      }
    }
    for_each_lane([&](unsigned lane) { WriteLane(imm, lane, product, d); });
  }
}

}  // namespace gridloom::exec
