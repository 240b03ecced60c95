#include "sim/study/studies.h"

#include <algorithm>

#include "rewriter/support/suggest.h"
#include "sim/study/kernelet/kernelet.h"
#include "sim/study/paper/paper.h"

namespace gridloom::study {

// Papers as data.
namespace crcs {
extern const Paper kPaper;
}
namespace dtbl {
extern const Paper kPaper;
}
namespace pagoda {
extern const Paper kPaper;
}
namespace pipeline {
extern const Paper kPaper;
}

namespace {

template <const Paper& paper>
Result<std::unique_ptr<Study>> MakePaper(const Settings& settings, const Environment& environment) {
  return MakePaperStudy(paper, settings, environment);
}

constexpr StudyRow kStudies[] = {
    {"crcs", "CRCS and PPCS (Kim et al.): dependent kernels that overlap with each other, copies and storage",
     MakePaper<crcs::kPaper>},
    {"dtbl",
     "Dynamic thread block launch (Wang et al.): kernels that launch kernels, or thread blocks that join others",
     MakePaper<dtbl::kPaper>},
    {"kernelet", "Kernelet (Zhong and He): kernel slicing, a Markov chain for pairs of kernels, co-scheduling",
     MakeKernelet},
    {"pagoda",
     "Pagoda (Yeh et al.): narrow tasks under a kernel that stays on the device, and what it is compared with",
     MakePaper<pagoda::kPaper>},
    {"pipeline", "Task pipelines (Mu et al.): kernels of different data sets side by side, labels in L2",
     MakePaper<pipeline::kPaper>},
};

}  // namespace

std::span<const StudyRow> Studies() { return kStudies; }

Result<std::unique_ptr<Study>> CreateStudy(const Settings& settings, const Environment& environment) {
  GL_TRY(name, settings.Text("study"));
  const auto row = std::ranges::find(kStudies, name, &StudyRow::name);
  if (row != std::end(kStudies)) return row->create(settings, environment);
  std::vector<std::string_view> names;
  std::string all;
  for (const StudyRow& known : kStudies) {
    names.push_back(known.name);
    all += (all.empty() ? "; there is " : ", ") + std::string(known.name);
  }
  return Error{settings.name() + ": no study '" + name + "'" + DidYouMean(name, names, all)};
}

}  // namespace gridloom::study
