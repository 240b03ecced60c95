#include "sim/timing/dispatch/work_reports.h"

#include <algorithm>

namespace gridloom::timing {

void WorkReports::Started(WorkId id, Cycle at) {
  WorkResult& result = works_.at(id).result;
  if (result.started == kNever) {
    begun_.push_back(id);
    launches_.SetStarted(id, at);
  }
  result.started = std::min(result.started, at);
}

void WorkReports::Clear() {
  begun_.clear();
  finished_.clear();
}

}  // namespace gridloom::timing
