# The exception tag that Luau's longjmp uses. zig's C library declares it but
# does not define it for wasm32-wasi.
.globl __c_longjmp
.tagtype __c_longjmp i32
__c_longjmp:
