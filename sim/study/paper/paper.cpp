#include "sim/study/paper/paper.h"

namespace gridloom::study {

Result<std::unique_ptr<Study>> MakePaperStudy(const Paper& paper, const Settings& settings,
                                              const Environment& environment) {
  return StudyOf<Runs>::Make(paper.exhibits, settings, environment, paper);
}

}  // namespace gridloom::study
