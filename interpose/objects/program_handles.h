// What the program has handles of, beyond devices, contexts and streams.
#pragma once

#include "interpose/api/cuda_types.h"
#include "interpose/objects/handle_table.h"
#include "interpose/objects/stream.h"

namespace gridloom::session {

class Array;
class Graph;
class GraphExec;
class GraphNode;
class GreenContext;
class Kernel;
class Library;
class LinkJob;
class MemoryPool;
struct ResourceDescription;
class MipmappedArray;
class Module;
class TextureReference;
class UserObject;

struct ProgramHandles {
  HandleTable<Event, cuda::CUevent> events;
  HandleTable<Library, cuda::CUlibrary> libraries;
  HandleTable<Module, cuda::CUmodule> modules;
  HandleTable<Kernel, cuda::CUkernel> kernels;
  HandleTable<Array, cuda::CUarray> arrays;
  HandleTable<MipmappedArray, cuda::CUmipmappedArray> mipmaps;
  HandleTable<TextureReference, cuda::CUtexref> texrefs;
  HandleTable<Graph, cuda::CUgraph> graphs;
  HandleTable<GraphNode, cuda::CUgraphNode> graph_nodes;
  HandleTable<GraphExec, cuda::CUgraphExec> graph_execs;
  HandleTable<MemoryPool, cuda::CUmemoryPool> pools;
  HandleTable<UserObject, cuda::CUuserObject> user_objects;
  HandleTable<LinkJob, cuda::CUlinkState> link_jobs;
  HandleTable<GreenContext, cuda::CUgreenCtx> greens;  ///< the last destroyed ones, too
  HandleTable<ResourceDescription, cuda::CUdevResourceDesc> resource_descriptions;
};

}  // namespace gridloom::session
