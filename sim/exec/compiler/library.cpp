// libgridloom-compiler.so: everything is in gl_exec_compiler; this file gives the library a source of its own.
