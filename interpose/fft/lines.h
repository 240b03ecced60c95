// The transforms of one dimension as steps: by one CTA for short lines, by several steps through work memory for longer
// ones.
#pragma once

#include <vector>

#include "interpose/fft/device/fft.h"
#include "interpose/fft/tables.h"

namespace gridloom::fft {

/// Where a side of a step lies; work memory has the parts from kData on.
enum class Buffer { kIn, kOut, kData, kFirst, kSecond };

struct PlannedStep {
  Step step;  ///< places in tables stand for addresses
  Buffer in, out;
  bool first, last;  ///< of a transform: those conjugate when it is an inverse one
};

struct Lines {
  Index n;  ///< of the transform, in real numbers for forms of such
  struct End {
    Buffer buffer;
    Form form;
    Number number;
    Index step;
  } in, out;
  /// The lines: count, in_offset, out_offset of each axis, inner ones first.
  std::vector<Axis> axes;
  bool first, last;
};

/// The forms of a transform of n real numbers, on the side of the real ones and of the spectrum, to or from the latter.
struct RealForms {
  Form real, spectrum;
};
RealForms FormsOf(Index n, bool forward);

class LineSteps {
 public:
  /// `native` is what is calculated in: f32 or f64.
  LineSteps(Number native, Tables* tables) : native_(native), tables_(tables) {}
  void Add(const Lines& lines);

  std::vector<PlannedStep>& steps() { return steps_; }
  /// The complex numbers that kFirst and kSecond must hold.
  Index first_size() const { return first_size_; }
  Index second_size() const { return second_size_; }

 private:
  /// A transform of `length` complex numbers.
  struct Plain {
    Index length;
    Side in, out;
    Buffer in_buffer, out_buffer;
    Index whole;
    std::vector<Axis> axes;
    bool first, last;
  };
  void AddSingle(const Plain& plain, Index convolved);
  void AddSeveral(const Plain& plain);
  void AddConvolution(const Plain& plain, Index size);
  void AddAny(const Plain& plain);
  void AddSplit(const Plain& plain);
  /// `whole` is the length of the line of which the step's lines are parts.
  void Finish(PlannedStep planned, std::vector<Axis> axes, Index whole);
  void AddPasses(Step* step, Index length);

  Number native_;
  Tables* tables_;
  std::vector<PlannedStep> steps_;
  Index first_size_ = 0, second_size_ = 0;
};

}  // namespace gridloom::fft
