#include "interpose/fft/lines.h"

#include <algorithm>
#include <cstdlib>

namespace gridloom::fft {
namespace {

/// The numbers of a CTA's lines; also the longest line of one CTA.
Index TileFor(Number native) { return TileOf(native == Number::kF64 ? 8 : 4); }

bool HasPasses(Index n) {
  const auto factors = PrimeFactors(n);
  return factors.empty() || factors.front() <= kMostPrime;
}

/// The least size of few passes in which 2n - 1 numbers have room: what Bluestein's algorithm convolves in.
Index ConvolutionSize(Index n) {
  Index best = 0;
  for (const Index odd : {1, 3, 5}) {
    Index size = odd;
    while (size < 2 * n - 1) size *= 2;
    if (best == 0 || size < best) best = size;
  }
  return best;
}

/// The factors of a line that is too long for one CTA: about equal, as few as leave `wanted` numbers to each; the
/// greatest first.
std::vector<Index> Split(Index n, Index wanted) {
  const std::vector<int> primes = PrimeFactors(n);
  for (std::size_t count = 2;; ++count) {
    std::vector<Index> parts(count, 1);
    for (const int prime : primes) *std::ranges::min_element(parts) *= prime;
    std::ranges::sort(parts, std::greater{});
    if (parts.front() <= wanted) return parts;
  }
}

/// Lines along two axes are lines along one when the outer one goes on where the inner one ends.
bool Continues(const Axis& inner, const Axis& outer) {
  return outer.in_offset == inner.count * inner.in_offset && outer.out_offset == inner.count * inner.out_offset &&
         outer.in_index == inner.count * inner.in_index && outer.out_index == inner.count * inner.out_index &&
         outer.turn == inner.count * inner.turn;
}

std::vector<Axis> Merged(const std::vector<Axis>& axes) {
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (axis.count == 1) continue;
    if (!merged.empty() && Continues(merged.back(), axis)) merged.back().count *= axis.count;
    else merged.push_back(axis);
  }
  if (merged.empty()) merged.push_back({1, 0, 0, 0, 0, 0});
  return merged;
}

Index InStride(const Step& step, const Axis& axis) { return std::abs(axis.in_offset + axis.in_index * step.in.step); }
Index OutStride(const Step& step, const Axis& axis) {
  return std::abs(axis.out_offset + axis.out_index * step.out.step);
}

/// How far apart neighbouring threads read and write when lines are neighbours along this axis.
Index Cost(const Step& step, const Axis& axis) {
  constexpr Index kFar = 16;
  const Index in = std::min(InStride(step, axis), std::abs(step.in_index * step.in.step));
  const Index out = std::min(OutStride(step, axis), std::abs(step.out_index * step.out.step));
  return 2 * (std::min(in, kFar) + std::min(out, kFar)) + (axis.count < 8 ? 1 : 0);
}

/// Packed lines in work memory: `pitch` complex numbers each.
std::vector<Axis> Packed(std::vector<Axis> axes, bool in, bool out, Index pitch) {
  for (Axis& axis : axes) {
    if (in) axis.in_offset = pitch;
    if (out) axis.out_offset = pitch;
    pitch *= axis.count;
  }
  return axes;
}

Index CountOf(const std::vector<Axis>& axes) {
  Index count = 1;
  for (const Axis& axis : axes) count *= axis.count;
  return count;
}

}  // namespace

RealForms FormsOf(Index n, bool forward) {
  if (n % 2 == 0) return {Form::kPairs, Form::kHalf};
  return {Form::kReal, forward ? Form::kComplex : Form::kHermitian};
}

void LineSteps::Add(const Lines& lines) {
  const auto halved = [](Form form) { return form == Form::kPairs || form == Form::kHalf; };
  const bool to_spectrum = lines.in.form == Form::kReal || lines.in.form == Form::kPairs;
  Plain plain{};
  plain.length = halved(lines.in.form) ? lines.n / 2 : lines.n;
  plain.in = {0, 0, lines.in.step, plain.length, lines.in.form, lines.in.number, false};
  plain.out = {0,    0, lines.out.step, to_spectrum ? lines.n / 2 + 1 : plain.length, lines.out.form, lines.out.number,
               false};
  plain.in_buffer = lines.in.buffer, plain.out_buffer = lines.out.buffer;
  plain.whole = lines.n;
  plain.axes = lines.axes;
  plain.first = lines.first, plain.last = lines.last;
  const bool single = (HasPasses(plain.length) ? plain.length : ConvolutionSize(plain.length)) <= TileFor(native_);
  if (plain.out.form == Form::kHalf && !single) AddSplit(plain);
  else AddAny(plain);
}

void LineSteps::AddAny(const Plain& plain) {
  const Index tile = TileFor(native_);
  if (HasPasses(plain.length)) {
    if (plain.length <= tile) AddSingle(plain, 0);
    else AddSeveral(plain);
    return;
  }
  const Index size = ConvolutionSize(plain.length);
  if (size <= tile) AddSingle(plain, size);
  else AddConvolution(plain, size);
}

/// n real numbers as h complex ones, whose spectrum goes to work memory; from there to that of the real ones as lines
/// of one number.
void LineSteps::AddSplit(const Plain& plain) {
  const Index half = plain.length;
  second_size_ = std::max(second_size_, half * CountOf(plain.axes));
  Plain halves = plain;
  halves.out = {0, 0, 1, half, Form::kComplex, native_, false};
  halves.out_buffer = Buffer::kSecond;
  halves.axes = Packed(plain.axes, false, true, half);
  halves.last = false;
  AddAny(halves);
  Plain split = plain;
  split.length = 1;
  split.in = {0, 0, 1, half + 1, Form::kSplit, native_, false};
  split.in_buffer = Buffer::kSecond;
  split.out.form = Form::kComplex;
  const std::vector<Axis> lines = Packed(plain.axes, true, false, half);
  split.axes = {{half + 1, 0, 0, 1, 1, 0}};
  split.axes.insert(split.axes.end(), lines.begin(), lines.end());
  split.first = false;
  AddSingle(split, 0);
}

void LineSteps::AddPasses(Step* step, Index length) {
  int done = 1;
  const auto add = [&](int radix) {
    const bool butterfly = radix <= 8;
    const Index table = !butterfly ? tables_->AllRoots(done * radix) : done > 1 ? tables_->ForPass(radix, done) : 0;
    step->pass[step->passes++] = {radix, done, 1.0f / static_cast<float>(done), static_cast<int>(table)};
    done *= radix;
  };
  int twos = 0;
  while (length % 2 == 0) length /= 2, ++twos;
  for (; twos >= 3 && twos != 4; twos -= 3) add(8);
  for (; twos >= 2; twos -= 2) add(4);
  if (twos == 1) add(2);
  for (const int prime : PrimeFactors(length)) add(prime);
}

/// Lines that a CTA transforms in shared memory; `convolved` is the size of Bluestein's convolution, or 0.
void LineSteps::AddSingle(const Plain& plain, Index convolved) {
  PlannedStep planned{};
  Step& step = planned.step;
  planned.in = plain.in_buffer, planned.out = plain.out_buffer;
  planned.first = plain.first, planned.last = plain.last;
  step.in = plain.in, step.out = plain.out;
  step.whole = plain.whole;
  step.in_index = step.out_index = 1;
  step.length = static_cast<int>(convolved != 0 ? convolved : plain.length);
  step.stored = static_cast<int>(plain.in.form == Form::kSplit ? 1 : plain.out.end);
  if (plain.in.form == Form::kHalf || plain.in.form == Form::kSplit || plain.out.form == Form::kHalf)
    step.halves = tables_->RootsOf(plain.whole, plain.whole / 2 + 1);
  AddPasses(&step, step.length);
  if (convolved != 0) {
    step.in.factors = static_cast<unsigned long long>(tables_->Chirp(plain.length, true));
    step.pass[step.passes++] = {1, 0, 0, static_cast<int>(tables_->Filter(plain.length, convolved, false))};
    AddPasses(&step, step.length);
    step.out.factors = static_cast<unsigned long long>(tables_->Chirp(plain.length, false));
    step.out.conjugate = true;
  }
  Finish(planned, plain.axes, step.length);
}

/// n = n0 n1 …: element j = j0 n1 n2 … + j1 n2 … + …; step t transforms along j_t and multiplies by the roots of what
/// remains. Work memory keeps the places of the numbers; the last step writes result k = k0 + n0 k1 + n0 n1 k2 + ….
void LineSteps::AddSeveral(const Plain& plain) {
  const Index n = plain.length;
  const std::vector<Index> parts = Split(n, TileFor(native_) / 4);
  first_size_ = std::max(first_size_, n * CountOf(plain.axes));
  const Side work{0, 0, 1, n, Form::kComplex, native_, false};
  Index rest = n, before = 1;
  for (std::size_t t = 0; t < parts.size(); ++t) {
    const bool first = t == 0, last = t + 1 == parts.size();
    const Index remaining = rest;
    rest /= parts[t];
    PlannedStep planned{};
    Step& step = planned.step;
    planned.in = first ? plain.in_buffer : Buffer::kFirst, planned.out = last ? plain.out_buffer : Buffer::kFirst;
    planned.first = first && plain.first, planned.last = last && plain.last;
    step.in = first ? plain.in : work, step.out = last ? plain.out : work;
    step.whole = plain.whole;
    step.length = step.stored = static_cast<int>(parts[t]);
    step.in_index = rest, step.out_index = last ? before : rest;
    if (!last && remaining <= kMostInOneTable) {
      step.turns.coarse = static_cast<unsigned long long>(tables_->Turns(parts[t], rest));
      step.turn_pitch = static_cast<int>(rest);
    } else if (!last) {
      step.turns = tables_->RootsOf(remaining, remaining);
    }
    if (first && plain.in.form == Form::kHalf) step.halves = tables_->RootsOf(plain.whole, plain.whole / 2 + 1);
    AddPasses(&step, step.length);
    std::vector<Axis> axes{{rest, 0, 0, 1, 1, 1}};
    Index place = n, weight = 1;
    std::vector<Axis> made;  // along the k of the steps before
    for (std::size_t u = 0; u < t; ++u) {
      place /= parts[u];
      made.push_back({parts[u], 0, 0, place, last ? weight : place, 0});
      weight *= parts[u];
    }
    axes.insert(axes.end(), made.rbegin(), made.rend());
    const std::vector<Axis> lines = Packed(plain.axes, !first, !last, n);
    axes.insert(axes.end(), lines.begin(), lines.end());
    Finish(planned, axes, n);
    before *= parts[t];
  }
}

/// Bluestein's algorithm through work memory: forth, in place of its results times the filter back.
void LineSteps::AddConvolution(const Plain& plain, Index size) {
  second_size_ = std::max(second_size_, size * CountOf(plain.axes));
  Plain forth = plain;
  forth.length = size;
  forth.in.factors = static_cast<unsigned long long>(tables_->Chirp(plain.length, true));
  forth.out = {0, 0, 1, size, Form::kComplex, native_, false};
  forth.out_buffer = Buffer::kSecond;
  forth.axes = Packed(plain.axes, false, true, size);
  forth.last = false;
  AddSeveral(forth);
  Plain back = plain;
  back.length = size;
  back.in = {
      0,   static_cast<unsigned long long>(tables_->Filter(plain.length, size, true)), 1, size, Form::kComplex, native_,
      true};
  back.in_buffer = Buffer::kSecond;
  back.axes = Packed(plain.axes, true, false, size);
  back.out.factors = static_cast<unsigned long long>(tables_->Chirp(plain.length, false));
  back.out.conjugate = true;
  back.first = false;
  AddSeveral(back);
}

/// Chooses which lines are neighbours in a CTA, and how many.
void LineSteps::Finish(PlannedStep planned, std::vector<Axis> axes, Index whole) {
  Step& step = planned.step;
  axes = Merged(axes);
  const auto near = std::ranges::min_element(axes, {}, [&](const Axis& axis) { return Cost(step, axis); });
  std::rotate(axes.begin(), near, near + 1);
  std::ranges::fill(step.axes, Axis{1, 0, 0, 0, 0, 0});
  std::ranges::copy(axes, step.axes);
  const Axis& lines = step.axes[0];
  while ((Index{step.length} << (step.log_lines + 1)) <= TileFor(native_) && (Index{1} << step.log_lines) < lines.count)
    ++step.log_lines;
  const auto plain = [&](const Side& side, Index along, Index across) {
    const Index lines_of_all = Index{1} << step.log_lines;
    return side.form == Form::kComplex && side.number == native_ && side.factors == 0 && side.end >= whole &&
           step.length * along + lines_of_all * across < 0x7fffffff;
  };
  step.in_plain = plain(step.in, std::abs(step.in_index * step.in.step), InStride(step, lines));
  step.out_plain =
      step.stored == step.length && plain(step.out, std::abs(step.out_index * step.out.step), OutStride(step, lines));
  const bool single = step.log_lines == 0;
  step.in_by_lines = single || InStride(step, lines) < std::abs(step.in_index * step.in.step);
  step.out_by_lines = single || OutStride(step, lines) < std::abs(step.out_index * step.out.step);
  steps_.push_back(planned);
}

}  // namespace gridloom::fft
