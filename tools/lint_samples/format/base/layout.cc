namespace longhaul {

int  Twice( int value ) {
    return 2*value; }

}  // namespace longhaul
