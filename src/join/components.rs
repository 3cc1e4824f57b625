//! Connected components of a graph whose nodes are the numbers 0, 1, 2, ...

/// Connected components of a graph, updated with each edge (union-find). The nodes, called members, are the
/// numbers 0, 1, 2, ... Takes 4 bytes per member.
///
/// ```
/// use simstore::join::Components;
///
/// let mut components = Components::new(4);
/// components.connect(3, 1);
/// components.connect(1, 2);
/// assert_eq!((0..4).map(|member| components.first(member)).collect::<Vec<_>>(), [0, 1, 1, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct Components {
    /// Parent of each member in the tree of its component. When two trees are connected, the smaller root becomes
    /// the parent of the other, so a root is the smallest member of its component.
    parent: Vec<u32>,
}

impl Components {
    /// Creates one component for each of the members 0 to `members` - 1.
    ///
    /// # Panics
    /// If `members` is 2^32 or more.
    pub fn new(members: usize) -> Self {
        let members = u32::try_from(members).expect("fewer than 2^32 members");
        Components { parent: (0..members).collect() }
    }

    /// Connects the components of two members.
    ///
    /// # Panics
    /// If `a` or `b` is not below the number of members.
    pub fn connect(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.parent[a.max(b)] = a.min(b) as u32;
    }

    /// Returns the smallest member of the component that contains `member`.
    ///
    /// # Panics
    /// If `member` is not below the number of members.
    pub fn first(&mut self, mut member: usize) -> usize {
        while self.parent[member] as usize != member {
            self.parent[member] = self.parent[self.parent[member] as usize];
            member = self.parent[member] as usize;
        }
        member
    }
}

/// Returns the connected components of the numbers (members) 0 to `count` - 1, where each pair connects two of
/// them. Components of one member are left out. The members of a component are ascending, and the components
/// are in the order of their first members.
///
/// ```
/// let clusters = simstore::join::clusters(6, [(0, 5), (4, 5), (1, 2)]);
/// assert_eq!(clusters, [vec![0, 4, 5], vec![1, 2]]);
/// ```
///
/// # Panics
/// If a number in a pair is not below `count`, or `count` is 2^32 or more.
pub fn clusters(count: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut components = Components::new(count);
    pairs.into_iter().for_each(|(a, b)| components.connect(a, b));
    let mut members: Vec<(usize, usize)> =
        (0..count).map(|member| (components.first(member), member)).collect();
    members.sort_unstable();
    let clusters = members.chunk_by(|a, b| a.0 == b.0).filter(|cluster| cluster.len() > 1);
    clusters.map(|cluster| cluster.iter().map(|&(_, member)| member).collect()).collect()
}
