//! A long list in pieces: it grows without being moved, and is given back piece by piece.

/// A list whose memory is never more than a piece larger than what it holds.
#[derive(Debug)]
pub(super) struct Pieces<T> {
    /// All full but the last.
    pieces: Vec<Vec<T>>,
    len: usize,
}

/// Elements of a piece.
const PIECE: usize = 1 << 12;

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces { pieces: Vec::new(), len: 0 }
    }
}

impl<T> Pieces<T> {
    pub(super) fn push(&mut self, element: T) {
        match self.pieces.last_mut().filter(|piece| piece.len() < PIECE) {
            Some(piece) => piece.push(element),
            None => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(element);
                self.pieces.push(piece);
            }
        }
        self.len += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.pieces.get(index / PIECE)?.get(index % PIECE)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.pieces.get_mut(index / PIECE)?.get_mut(index % PIECE)
    }

    /// All elements; each piece is freed when its last one has been given.
    pub(super) fn into_elements(self) -> impl Iterator<Item = T> {
        self.pieces.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECE, Pieces};

    #[test]
    fn it_is_a_list() {
        let all = 2 * PIECE + 3;
        let mut list = Pieces::default();
        (0..all).for_each(|number| list.push(number));
        assert_eq!(list.len(), all);
        if let Some(element) = list.get_mut(PIECE) {
            *element += 0;
        }
        assert!((0..all).all(|number| list.get(number) == Some(&number)));
        assert_eq!(list.get(all), None);
        assert!(list.into_elements().eq(0..all));
    }
}
