#include "sim/exec/reorder/reorder.h"

namespace gridloom::exec {

bool PagesHaveOwners() { return true; }

}  // namespace gridloom::exec
