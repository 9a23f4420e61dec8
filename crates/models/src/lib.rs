//! Names to files: the catalogue, the download, its hash, and the models folder.
