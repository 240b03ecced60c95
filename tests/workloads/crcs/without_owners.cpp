// The rule that pages have owners, taken away: linked into a shim in place of the executor's own answer, to see that it
// is this rule which keeps results right under --reorder (without_owners_test.py).
#include "sim/exec/reorder/reorder.h"

namespace gridloom::exec {

bool PagesHaveOwners() { return false; }

}  // namespace gridloom::exec
