// Texture and surface objects.
#include "interpose/objects/texture.h"

#include "hooks/support.h"

namespace gridloom::hooks {

using session::TextureRecord;

CUresult cuTexObjectCreate(Process& process, CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  GL_CU_REQUIRE(object != nullptr && resource != nullptr && texture != nullptr);
  return session::CreateTexture(process.handles, *resource, *texture, view, object);
}
CUresult cuTexObjectDestroy(Process& process, CUtexObject object) { return session::DestroyTexture(object); }
CUresult cuTexObjectGetResourceDesc(Process& process, CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  GL_CU_REQUIRE(resource != nullptr);
  TextureRecord record;
  GL_CU_TRY(session::FindTexture(object, &record));
  *resource = record.resource;
  return CUDA_SUCCESS;
}
CUresult cuTexObjectGetTextureDesc(Process& process, CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  GL_CU_REQUIRE(texture != nullptr);
  TextureRecord record;
  GL_CU_TRY(session::FindTexture(object, &record));
  *texture = record.texture;
  return CUDA_SUCCESS;
}
CUresult cuTexObjectGetResourceViewDesc(Process& process, CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  GL_CU_REQUIRE(view != nullptr);
  TextureRecord record;
  GL_CU_TRY(session::FindTexture(object, &record));
  GL_CU_REQUIRE(record.has_view);
  *view = record.view;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(Process& process, CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  GL_CU_REQUIRE(object != nullptr && resource != nullptr);
  return session::CreateSurface(process.handles, *resource, object);
}
CUresult cuSurfObjectDestroy(Process& process, CUsurfObject object) { return session::DestroySurface(object); }
CUresult cuSurfObjectGetResourceDesc(Process& process, CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  GL_CU_REQUIRE(resource != nullptr);
  TextureRecord record;
  GL_CU_TRY(session::FindSurface(object, &record));
  *resource = record.resource;
  return CUDA_SUCCESS;
}

}  // namespace gridloom::hooks
