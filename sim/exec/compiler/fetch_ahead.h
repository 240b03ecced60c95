// Loops in which each lane goes on through memory from a place of its own: the rows of a sparse matrix, the edges of a
// graph. Lanes' first accesses all miss the caches, and some processors wait for the misses of a gather one after the
// other, and do not foresee them. A marker before the loop (MarkerKind::kFetchAhead) fetches what the warp is about to
// read, and as much behind it, where the next warp will.
//
//   before:  loop: … load(%p)  %p = phi [%start, entry], [%p + 4, loop]
//   after:   entry: … fetch_ahead(%start)
//            loop: … load(%p)
#pragma once

namespace gridloom::exec {

class SpmdModule;

/// Adds the markers; whether they are worth it is measured (runtime/processor_choices.h): on Zen 5 a loop over the rows
/// of a sparse matrix took 2.7 times as long without them, on Intel's processors as long. The functions are in
/// LoopSimplify form.
void PlaceFetchAhead(SpmdModule& spmd);

}  // namespace gridloom::exec
