// Rows that are loaded long before they are used, as compilers place the loads of unrolled loops: a GPU's threads wait
// less so, but a row takes two of the processor's vector registers or more, and what does not fit into them goes
// through the stack. Such loads go down to their uses.
#pragma once

namespace gridloom::exec {

class WarpValues;
struct WarpSource;

/// Moves loads within their blocks, before code is emitted: those of places that follow a pattern, where more of them
/// wait for their uses than registers hold, and never past what may write memory or wait.
void SinkRows(const WarpSource& source, WarpValues& values);

}  // namespace gridloom::exec
